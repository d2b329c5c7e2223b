//! ZooKeeper servers as child processes, each on its own port and in its own directory.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{free_ports, install_packages};

const JAR: &str = "/usr/share/java/zookeeper.jar";
/// With a logger, so that a server that does not start says why, and with what Debian's manifest forgets.
const CLASS_PATH: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar:\
                          /usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar";
const LOGGER: &str = "/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-simple.jar";
const ALONE: &str = "org.apache.zookeeper.server.ZooKeeperServerMain";
const QUORUM_PEER: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
const OLD: &str = "3.5.10";
const SMALL: [&str; 4] = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"];
/// A Java process on a busy machine takes its time.
const START: Duration = Duration::from_secs(120);

/// A running server. It is killed when it is dropped.
pub struct ZooKeeper {
    home: TempDir,
    port: u16,
    secure_port: Option<u16>,
    main: &'static str,
    class_path: String,
    properties: Vec<String>,
    /// What the virtual machine is told: to be small and quick to start, unless something is measured.
    machine: Vec<String>,
    child: Option<Server>,
}

/// A server's process, and the shell that ends it when we are gone, however we go.
struct Server {
    shell: Child,
    pid: u32,
}

impl Server {
    fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    }
}

/// The PEM files of a server that speaks TLS.
#[derive(Debug)]
pub struct Tls {
    /// Who signed both.
    pub ca: PathBuf,
    /// The client's certificate.
    pub certificate: PathBuf,
    /// The client's key.
    pub key: PathBuf,
}

impl ZooKeeper {
    /// A server alone, with a tick of 200 ms: sessions may be as short as 400 ms.
    pub fn start() -> ZooKeeper {
        ZooKeeper::start_with("")
    }

    /// A server alone, with more lines in its configuration.
    pub fn start_with(settings: &str) -> ZooKeeper {
        let port = free_ports(1)[0];
        let mut server = ZooKeeper::prepare(port, settings, ALONE);
        server.restart();
        server
    }

    /// A server alone as one would run it: with memory, and with all compilers of the virtual machine.
    pub fn start_for_measurements(settings: &str) -> ZooKeeper {
        let mut server = ZooKeeper::prepare(free_ports(1)[0], settings, ALONE);
        server.machine = ["-Xms2g", "-Xmx2g"].map(str::to_owned).into();
        server.restart();
        server
    }

    /// The number of its process.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|it| it.pid)
    }

    /// A server alone that clears empty containers away so often.
    pub fn start_with_containers_cleared_every(interval: Duration) -> ZooKeeper {
        let mut server = ZooKeeper::prepare(free_ports(1)[0], "", ALONE);
        server.properties.push(format!("-Dznode.container.checkIntervalMs={}", interval.as_millis()));
        server.restart();
        server
    }

    /// One of three servers whose others are not there: it lets clients read, if they are content with that.
    pub fn start_read_only() -> ZooKeeper {
        let ports = free_ports(7);
        let peers: String = (0..3)
            .map(|n| format!("server.{}=127.0.0.1:{}:{}\n", n + 1, ports[1 + n], ports[4 + n]))
            .collect();
        let settings = format!("initLimit=50\nsyncLimit=25\n{peers}");
        let mut server = ZooKeeper::prepare(ports[0], &settings, QUORUM_PEER);
        fs::write(server.home.path().join("data/myid"), "1").unwrap();
        server.properties.push("-Dreadonlymode.enabled=true".to_owned());
        server.restart();
        server
    }

    /// A server of 3.5, the last line without persistent watches.
    pub fn start_old() -> ZooKeeper {
        let mut server = ZooKeeper::prepare(free_ports(1)[0], "", ALONE);
        let folder = fetch_old();
        server.class_path = format!("{}/*:{LOGGER}", folder.display());
        server.restart();
        server
    }

    /// A server that speaks TLS on another port and asks for certificates.
    pub fn start_with_tls() -> (ZooKeeper, Tls) {
        let ports = free_ports(2);
        let mut server = ZooKeeper::prepare(ports[0], "", ALONE);
        let (tls, store, trust) = make_certificates(server.home.path());
        let settings = format!(
            "secureClientPort={}\nserverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             ssl.keyStore.location={}\nssl.keyStore.type=PEM\n\
             ssl.trustStore.location={}\nssl.trustStore.type=PEM\nssl.clientAuth=need\n",
            ports[1],
            store.display(),
            trust.display(),
        );
        server.secure_port = Some(ports[1]);
        let config = server.home.path().join("zoo.cfg");
        let text = fs::read_to_string(&config).unwrap() + &settings;
        fs::write(config, text).unwrap();
        server.restart();
        (server, tls)
    }

    fn prepare(port: u16, settings: &str, main: &'static str) -> ZooKeeper {
        install();
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        fs::create_dir(&data).unwrap();
        let config = format!(
            "tickTime=200\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
             4lw.commands.whitelist=*\nmaxClientCnxns=0\nforceSync=no\n{settings}\n",
            data.display()
        );
        fs::write(home.path().join("zoo.cfg"), config).unwrap();
        ZooKeeper {
            home,
            port,
            secure_port: None,
            main,
            class_path: CLASS_PATH.to_owned(),
            properties: Vec::new(),
            machine: SMALL.map(str::to_owned).into(),
            child: None,
        }
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port for clients with TLS.
    pub fn secure_port(&self) -> u16 {
        self.secure_port.unwrap()
    }

    /// A url for a registry, with these settings.
    pub fn url(&self, namespace: &str, settings: &str) -> String {
        format!("zookeeper://127.0.0.1:{}/{namespace}?{settings}", self.port)
    }

    /// Where it keeps its transactions.
    pub fn transactions(&self) -> PathBuf {
        self.home.path().join("data/version-2")
    }

    /// Kills the server; what it stored stays.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.child.take() {
            drop(server.shell.stdin.take());
            server.shell.wait().unwrap();
        }
    }

    /// Starts the server again, and waits until it serves.
    pub fn restart(&mut self) {
        self.launch();
        self.wait_until_it_serves();
    }

    fn launch(&mut self) {
        self.kill();
        let mut command = Command::new("sh");
        // The shell waits for the end of its input, which comes with our own, and kills what it started.
        let script = r#""$@" </dev/null >>"$LOG" 2>&1 & echo $!; cat >/dev/null; kill -9 $!; wait"#;
        command.args(["-c", script, "sh", "java"]).env("LOG", self.home.path().join("log"));
        command.args(&self.machine);
        command.args(["-Dzookeeper.admin.enableServer=false", "-Dzookeeper.extendedTypesEnabled=true"]);
        command.args(&self.properties);
        command
            .args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", &self.class_path, self.main])
            .arg(self.home.path().join("zoo.cfg"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = command.spawn().expect("a shell runs");
        let mut pid = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut pid).unwrap();
        self.child = Some(Server { shell, pid: pid.trim().parse().unwrap() });
    }

    fn wait_until_it_serves(&mut self) {
        let begin = Instant::now();
        while !self.serves() {
            let ended = self.child.as_ref().unwrap().has_ended();
            assert!(!ended, "ZooKeeper ended: {}", self.log());
            assert!(begin.elapsed() < START, "ZooKeeper does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether it answers, and it is the process that we started.
    pub fn serves(&self) -> bool {
        let Some(server) = &self.child else { return false };
        let answers = self.ask("srvr").is_some_and(|it| it.contains("Mode: "));
        answers && listens(server.pid, self.port)
    }

    /// What the server says to a four-letter word.
    pub fn ask(&self, word: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(word.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// What ZooKeeper's own command line says to these commands.
    pub fn cli(&self, commands: &[&str]) -> String {
        let mut run = Command::new("java");
        run.args(["-XX:TieredStopAtLevel=1", "-cp", CLASS_PATH, "org.apache.zookeeper.ZooKeeperMain"]);
        run.args(["-server", &format!("127.0.0.1:{}", self.port)]);
        run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = run.spawn().expect("java runs");
        let text = commands.join("\n") + "\nquit\n";
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
    }

    /// The end of what it logged.
    pub fn log(&self) -> String {
        let text = fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Stops it in its tracks, without ending it, or lets it go on.
    pub fn freeze(&self, frozen: bool) {
        let pid = self.child.as_ref().unwrap().pid.to_string();
        let signal = if frozen { "-STOP" } else { "-CONT" };
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Three servers that elect a leader.
pub struct Ensemble {
    /// The servers.
    pub servers: Vec<ZooKeeper>,
}

impl Ensemble {
    /// Starts three servers and waits until all of them serve.
    pub fn start() -> Ensemble {
        let ports = free_ports(9);
        let peers: String = (0..3)
            .map(|n| format!("server.{}=127.0.0.1:{}:{}\n", n + 1, ports[3 + n], ports[6 + n]))
            .collect();
        let settings = format!("initLimit=50\nsyncLimit=25\n{peers}");
        let mut servers = Vec::new();
        for (n, port) in ports[..3].iter().enumerate() {
            let mut server = ZooKeeper::prepare(*port, &settings, QUORUM_PEER);
            fs::write(server.home.path().join("data/myid"), (n + 1).to_string()).unwrap();
            server.launch();
            servers.push(server);
        }
        servers.iter_mut().for_each(ZooKeeper::wait_until_it_serves);
        Ensemble { servers }
    }

    /// A url for a registry, with these settings.
    pub fn url(&self, namespace: &str, settings: &str) -> String {
        let servers: Vec<String> = self.servers.iter().map(|it| format!("127.0.0.1:{}", it.port)).collect();
        format!("zookeeper://{}/{namespace}?{settings}", servers.join(","))
    }

    /// Starts those that do not run, and waits until all of them serve.
    pub fn restart(&mut self) {
        self.servers.iter_mut().filter(|it| it.child.is_none()).for_each(ZooKeeper::launch);
        self.servers.iter_mut().for_each(ZooKeeper::wait_until_it_serves);
    }

    /// Which of them leads.
    pub fn leader(&self) -> Option<usize> {
        self.servers.iter().position(|it| it.ask("srvr").is_some_and(|it| it.contains("Mode: leader")))
    }
}

/// Whether this process has a socket that listens on that port.
fn listens(pid: u32, port: u16) -> bool {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|it| fs::read_to_string(it).ok())
        .flat_map(|it| it.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_it = fields.get(1)?.ends_with(&format!(":{port:04X}")) && *fields.get(3)? == "0A";
            is_it.then(|| format!("socket:[{}]", fields[9]))
        })
        .collect();
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files
        .flatten()
        .filter_map(|it| fs::read_link(it.path()).ok())
        .any(|it| it.to_str().is_some_and(|name| sockets.iter().any(|it| it == name)))
}

/// Installs Debian's packages if they are missing.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let has_java = Command::new("java").arg("-version").stderr(Stdio::null()).status().is_ok();
        if Path::new(JAR).exists() && has_java {
            return;
        }
        install_packages(&["zookeeper", "default-jre-headless"]);
    });
}

/// The folder with a server of an older line, which is fetched if it is missing.
fn fetch_old() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/tools/zookeeper-{OLD}"));
    let artifacts = [
        format!("org.apache.zookeeper:zookeeper-jute:{OLD}"),
        "org.apache.yetus:audience-annotations:0.5.0".to_owned(),
        format!("org.apache.zookeeper:zookeeper:{OLD}"),
    ];
    // The last of them: if it is here, so are the others.
    if !folder.join(format!("zookeeper-{OLD}.jar")).exists() {
        for artifact in artifacts {
            let mut run = Command::new("mvn");
            run.args(["-q", "dependency:copy", &format!("-Dartifact={artifact}")]);
            run.arg(format!("-DoutputDirectory={}", folder.display())).current_dir(std::env::temp_dir());
            let done = run.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success());
            assert!(done, "{artifact} is missing and Maven could not fetch it: install `maven`");
        }
    }
    folder
}

/// A CA, and a server's and a client's certificate that it signed.
fn make_certificates(home: &Path) -> (Tls, PathBuf, PathBuf) {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let ca_key = KeyPair::generate().unwrap();
    let mut ca_params = CertificateParams::new(Vec::new()).unwrap();
    ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = ca_params.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(ca_params, ca_key);
    let signed = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
    };
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let (server, server_key) = signed("127.0.0.1");
    let (client, client_key) = signed("client");
    let store = write("server.pem", &(server_key + &server));
    let trust = write("ca.pem", &ca.pem());
    let tls = Tls {
        ca: trust.clone(),
        certificate: write("client.pem", &client),
        key: write("client-key.pem", &client_key),
    };
    (tls, store, trust)
}
