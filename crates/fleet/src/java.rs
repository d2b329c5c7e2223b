//! The Java side: the Maven project `interop/`, built when somebody needs it.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Builds the project, and says what `java` needs to find its classes and everything that they need. It installs a JDK
/// and Maven if they are missing.
pub fn class_path() -> io::Result<String> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
    install_what_is_missing()?;
    let built = Command::new("mvn").args(["-q", "-B", "package"]).current_dir(&home).output()?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stdout);
        return Err(io::Error::other(format!("the Java side cannot be built:\n{said}")));
    }
    let target = home.join("target");
    Ok(format!("{}:{}/*", target.join("interop.jar").display(), target.join("lib").display()))
}

fn install_what_is_missing() -> io::Result<()> {
    let has = |program: &str| {
        let mut version = Command::new(program);
        version.arg("-version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|it| it.success())
    };
    if has("javac") && has("mvn") {
        return Ok(());
    }
    for words in [&["update"][..], &["install", "-y", "openjdk-17-jdk-headless", "maven"]] {
        let mut install = Command::new("apt-get");
        install.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        if !install.status().is_ok_and(|it| it.success()) {
            return Err(io::Error::other("install a JDK 17 and Maven: apt-get could not"));
        }
    }
    Ok(())
}
