//! Secrets are looked up when they are needed: one that was changed since is the new one.

use std::fs::File;
use std::io::Read;

use elasticjob_core::spec::secret::{Part, parts};

use crate::executor::TypeError;

/// A longer file is no secret.
const FILE_MAX: u64 = 64 * 1024;

/// What a property holds, with the secrets that it names.
pub(super) async fn reveal(key: &'static str, text: &str) -> Result<String, TypeError> {
    let text = text.to_owned();
    let read = tokio::task::spawn_blocking(move || reveal_now(key, &text)).await;
    read.unwrap_or_else(|error| Err(TypeError::secret(key, format!("cannot be read: {error}"))))
}

/// The same, on this thread.
pub(super) fn reveal_now(key: &str, text: &str) -> Result<String, TypeError> {
    let wrong = |fault: String| TypeError::secret(key, fault);
    let mut value = String::new();
    for part in parts(text.trim()).map_err(|fault| wrong(fault.to_owned()))? {
        match part {
            Part::Text(text) => value.push_str(text),
            Part::Variable(name) => match std::env::var(name) {
                Ok(secret) => value.push_str(&secret),
                Err(_) => {
                    return Err(wrong(format!(
                        "needs the environment variable {name}, which is not set: set it on this host"
                    )));
                }
            },
            Part::File(path) => value.push_str(
                &read_file(path).map_err(|error| wrong(format!("cannot read the file {path}: {error}")))?,
            ),
        }
    }
    Ok(value)
}

fn read_file(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_MAX).read_to_string(&mut text)?;
    // Editors end a file with a line feed; it is not part of the secret.
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_comes_from_where_the_property_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "s3cret\n").unwrap();
        let value = reveal_now("k", &format!("https://x/?key=${{file:{}}}&v=$${{1}}", path.display()));
        assert_eq!(value.unwrap(), "https://x/?key=s3cret&v=${1}");
        // Every process has one.
        let value = reveal_now("k", " ${PATH} ").unwrap();
        assert_eq!(value, std::env::var("PATH").unwrap());
    }

    #[test]
    fn one_that_is_not_there_is_said_to_be_missing() {
        let said = |text: &str| reveal_now("email.password", text).unwrap_err().to_string();
        assert_eq!(
            said("${NO_SUCH_VARIABLE_HERE}"),
            "property email.password needs the environment variable NO_SUCH_VARIABLE_HERE, which is not set: set it on this host"
        );
        let text = said("${file:/no/such/file}");
        assert!(text.starts_with("property email.password cannot read the file /no/such/file: "), "{text}");
    }
}
