//! Which address this instance goes by.
//!
//! Peers know an instance by its IPv4 address: it is part of the instance's id and the name of its server's node. So the choice
//! must come out the same at every start. Java takes the last interface that the system happens to list; here the order is fixed:
//!
//! 1. Interfaces that are down, and addresses of sub-interfaces (`eth0:1`, which may move to another host) or of the
//!    loopback, are left out.
//! 2. Ordinary interfaces come first, then tunnels and other point-to-point links, then self-assigned addresses (169.254.x.x),
//!    and last the bridges of containers and virtual machines (`docker0`, `br-…`, `veth…`, `virbr…`).
//! 3. Among equals the lowest interface index wins, and of one interface its first address.
//!
//! Inside a container that leads to its `eth0`. Without any network it leads to 127.0.0.1, which [`Host::Loopback`] tells, so that
//! it can be logged: two such hosts would take each other for one.
//!
//! A [`Preference`] narrows the choice down, and is then binding: if nothing fits, that is an error.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use regex_lite::Regex;

/// The environment variable that names the preferred interface.
///
/// ```
/// assert_eq!(elasticjob::host::INTERFACE_VARIABLE, "ELASTICJOB_PREFERRED_NETWORK_INTERFACE");
/// ```
pub const INTERFACE_VARIABLE: &str = "ELASTICJOB_PREFERRED_NETWORK_INTERFACE";

/// The environment variable that describes the preferred address.
///
/// ```
/// assert_eq!(elasticjob::host::IP_VARIABLE, "ELASTICJOB_PREFERRED_NETWORK_IP");
/// ```
pub const IP_VARIABLE: &str = "ELASTICJOB_PREFERRED_NETWORK_IP";

/// Finds the address of this instance among the interfaces of this machine.
///
/// ```
/// use elasticjob::host::{Preference, discover};
///
/// let host = discover(&Preference::default())?;
/// println!("this instance goes by {}", host.ip());
/// # Ok::<(), elasticjob::host::HostError>(())
/// ```
///
/// # Errors
///
/// When the interfaces cannot be listed, or none of them fits the preference.
pub fn discover(preference: &Preference) -> Result<Host, HostError> {
    choose(&Interface::all().map_err(HostError::Unlisted)?, preference)
}

/// Chooses the address among given interfaces, by the rules of this module.
///
/// ```
/// use elasticjob::host::{Host, Interface, Preference, choose};
///
/// let docker = Interface::new("docker0", 3, ["172.17.0.1".parse()?]);
/// let wired = Interface::new("eth0", 4, ["192.0.2.7".parse()?]);
/// assert_eq!(choose(&[docker, wired], &Preference::default())?.to_string(), "192.0.2.7 (eth0)");
/// assert_eq!(choose(&[], &Preference::default())?, Host::Loopback);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When there is a preference and nothing fits it; the error lists what there is.
pub fn choose(interfaces: &[Interface], preference: &Preference) -> Result<Host, HostError> {
    let wanted = preference.ip.as_deref().map(Pattern::new).transpose()?;
    let fits = |interface: &Interface, address: Ipv4Addr| {
        preference.interface.as_ref().is_none_or(|name| *name == interface.name)
            && wanted.as_ref().is_none_or(|pattern| pattern.fits(address))
            && (interface.is_eligible(address)
                || preference.interface.is_some()
                || wanted.as_ref().is_some_and(|pattern| pattern.is_exactly(address)))
    };
    let mut best: Option<(Rank<'_>, Ipv4Addr)> = None;
    for interface in interfaces.iter().filter(|interface| interface.up) {
        for (position, address) in interface.addresses.iter().enumerate() {
            let exact = wanted.as_ref().is_some_and(|pattern| pattern.is_exactly(*address));
            let rank = (!exact, interface.kind(*address), interface.index, interface.name.as_str(), position);
            if fits(interface, *address) && best.as_ref().is_none_or(|(least, _)| rank < *least) {
                best = Some((rank, *address));
            }
        }
    }
    match best {
        Some(((.., name, _), ip)) => Ok(Host::Interface { name: name.to_owned(), ip }),
        None if *preference == Preference::default() => Ok(Host::Loopback),
        None => Err(HostError::unmet(interfaces, preference)),
    }
}

/// The smallest wins: not what was asked for to the letter, kind, index, name, position of the address.
type Rank<'a> = (bool, Kind, u32, &'a str, usize);

/// What a user wants of the address. Both wishes must be met.
///
/// ```
/// use elasticjob::host::{Interface, Preference, choose};
///
/// let office = Interface::new("eth0", 2, ["192.0.2.7".parse()?]);
/// let backend = Interface::new("eth1", 3, ["10.0.3.7".parse()?]);
/// let preference = Preference { ip: Some("10.0.".into()), ..Preference::default() };
/// assert_eq!(choose(&[office, backend], &preference)?.to_string(), "10.0.3.7 (eth1)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// Name of the interface. One that is named may also be a sub-interface or the loopback.
    pub interface: Option<String>,
    /// Beginning of the address, or a regular expression for the whole of it. An address in full is taken wherever it is.
    pub ip: Option<String>,
}

impl Preference {
    /// Adds what environment variables say about wishes that are still open.
    ///
    /// ```
    /// use elasticjob::host::{INTERFACE_VARIABLE, Preference};
    ///
    /// let env = |name: &str| (name == INTERFACE_VARIABLE).then(|| "eth1".to_owned());
    /// let preference = Preference { ip: Some("10.".into()), interface: None }.or_env(env);
    /// assert_eq!(preference, Preference { ip: Some("10.".into()), interface: Some("eth1".into()) });
    /// ```
    #[must_use]
    pub fn or_env(self, env: impl Fn(&str) -> Option<String>) -> Preference {
        let env = |name| env(name).filter(|value| !value.trim().is_empty());
        Preference {
            interface: self.interface.or_else(|| env(INTERFACE_VARIABLE)),
            ip: self.ip.or_else(|| env(IP_VARIABLE)),
        }
    }

    /// Says what is wrong with a wish for an address, in words that follow it.
    pub(crate) fn check_ip(text: &str) -> Result<(), String> {
        match Pattern::new(text) {
            Err(HostError::Pattern { reason, .. }) => {
                Err(format!("is neither the beginning of an address nor a regular expression: {reason}"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// The address of an instance, and how it was come by.
///
/// ```
/// use elasticjob::host::Host;
///
/// let host = Host::Interface { name: "eth0".into(), ip: [192, 0, 2, 7].into() };
/// assert_eq!(host.ip().to_string(), "192.0.2.7");
/// assert_eq!(Host::Loopback.to_string(), "127.0.0.1 (no network interface has an IPv4 address)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// The address of an interface.
    Interface {
        /// Name of the interface.
        name: String,
        /// The address.
        ip: Ipv4Addr,
    },
    /// There is no network, so the address is 127.0.0.1. Enough for one machine, and worth a line in the log.
    Loopback,
}

impl Host {
    /// The address.
    ///
    /// ```
    /// assert!(elasticjob::host::Host::Loopback.ip().is_loopback());
    /// ```
    #[must_use]
    pub fn ip(&self) -> Ipv4Addr {
        match self {
            Host::Interface { ip, .. } => *ip,
            Host::Loopback => Ipv4Addr::LOCALHOST,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Interface { name, ip } => write!(out, "{ip} ({name})"),
            Host::Loopback => {
                write!(out, "{} (no network interface has an IPv4 address)", Ipv4Addr::LOCALHOST)
            }
        }
    }
}

/// A network interface with its IPv4 addresses.
///
/// ```
/// use elasticjob::host::Interface;
///
/// let interface = Interface::new("eth0", 2, ["192.0.2.7".parse()?]);
/// assert!(interface.up);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Its number in the system.
    pub index: u32,
    /// Whether it is up and running.
    pub up: bool,
    /// Whether it leads to a single peer, as tunnels do.
    pub point_to_point: bool,
    /// Its IPv4 addresses, in the system's order.
    pub addresses: Vec<Ipv4Addr>,
}

impl Interface {
    /// An interface that is up.
    ///
    /// ```
    /// let interface = elasticjob::host::Interface::new("wlan0", 3, []);
    /// assert_eq!(interface.name, "wlan0");
    /// ```
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        index: u32,
        addresses: impl IntoIterator<Item = Ipv4Addr>,
    ) -> Interface {
        let addresses = addresses.into_iter().collect();
        Interface { name: name.into(), index, up: true, point_to_point: false, addresses }
    }

    /// The interfaces of this machine that have an address of any kind.
    ///
    /// ```
    /// for interface in elasticjob::host::Interface::all()? {
    ///     println!("{}: {:?}", interface.name, interface.addresses);
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the system does not tell.
    pub fn all() -> io::Result<Vec<Interface>> {
        let mut interfaces = BTreeMap::new();
        for found in if_addrs::get_if_addrs()? {
            let (up, index) = (found.is_oper_up(), found.index.unwrap_or(u32::MAX));
            let interface = interfaces
                .entry((index, found.name.clone()))
                .or_insert_with(|| Interface { up, ..Interface::new(&found.name, index, []) });
            interface.point_to_point |= found.is_p2p();
            if let IpAddr::V4(address) = found.ip() {
                interface.addresses.push(address);
            }
        }
        Ok(interfaces.into_values().collect())
    }

    fn is_eligible(&self, address: Ipv4Addr) -> bool {
        !address.is_loopback() && !address.is_unspecified() && !self.is_loopback() && !self.name.contains(':')
    }

    fn is_loopback(&self) -> bool {
        self.name == "lo" || self.addresses.iter().any(Ipv4Addr::is_loopback)
    }

    fn kind(&self, address: Ipv4Addr) -> Kind {
        const BRIDGES: [&str; 16] = [
            "docker",
            "br-",
            "veth",
            "virbr",
            "vnet",
            "lxcbr",
            "lxdbr",
            "cni",
            "flannel",
            "cali",
            "podman",
            "kube",
            "nerdctl",
            "vboxnet",
            "vmnet",
            "vEthernet",
        ];
        const TUNNELS: [&str; 7] = ["tun", "tap", "utun", "wg", "ppp", "zt", "tailscale"];
        let named = |prefixes: &[&str]| prefixes.iter().any(|prefix| self.name.starts_with(prefix));
        if named(&BRIDGES) {
            Kind::Bridge
        } else if address.is_link_local() {
            Kind::SelfAssigned
        } else if self.point_to_point || named(&TUNNELS) {
            Kind::Tunnel
        } else {
            Kind::Ordinary
        }
    }
}

/// Interfaces as an address is looked for: the first kind first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Ordinary,
    Tunnel,
    SelfAssigned,
    Bridge,
}

impl fmt::Display for Interface {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)?;
        for (at, address) in self.addresses.iter().enumerate() {
            write!(out, "{}{address}", if at == 0 { " " } else { " and " })?;
        }
        if self.addresses.is_empty() {
            out.write_str(" without an IPv4 address")?;
        }
        if !self.up {
            out.write_str(" (down)")?;
        }
        Ok(())
    }
}

/// A wish for an address: its beginning, or a regular expression for the whole of it, as in Java.
struct Pattern<'a> {
    text: &'a str,
    expression: Regex,
}

impl<'a> Pattern<'a> {
    fn new(text: &'a str) -> Result<Pattern<'a>, HostError> {
        // Alone first: `a)|(b` would be a regular expression only between our parentheses.
        match Regex::new(text).and_then(|_| Regex::new(&format!("^(?:{text})$"))) {
            Ok(expression) => Ok(Pattern { text, expression }),
            Err(error) => Err(HostError::Pattern { value: text.to_owned(), reason: error.to_string() }),
        }
    }

    fn fits(&self, address: Ipv4Addr) -> bool {
        let address = address.to_string();
        address.starts_with(self.text) || self.expression.is_match(&address)
    }

    fn is_exactly(&self, address: Ipv4Addr) -> bool {
        self.text == address.to_string()
    }
}

/// Why an instance has no address.
///
/// ```
/// use elasticjob::host::{Interface, Preference, choose};
///
/// let preference = Preference { interface: Some("eth1".into()), ip: None };
/// let error = choose(&[Interface::new("eth0", 2, ["192.0.2.7".parse()?])], &preference).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "no network interface called `eth1` has an address: set preferredNetworkInterface to one of those that there are (eth0 192.0.2.7)"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The system does not tell its interfaces.
    #[error("the network interfaces cannot be listed: {0}")]
    Unlisted(#[source] io::Error),
    /// The wish for an address cannot be read.
    #[error(
        "preferredNetworkIp `{}` is neither the beginning of an address nor a regular expression: {reason}",
        value.escape_debug()
    )]
    Pattern {
        /// The wish.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No interface of the name has an address.
    #[error(
        "no network interface called `{}` has an address: set preferredNetworkInterface to one of those that there are ({found})",
        name.escape_debug()
    )]
    Missing {
        /// The name.
        name: String,
        /// The interfaces with their addresses.
        found: String,
    },
    /// The interface is down, or has no IPv4 address.
    #[error(
        "network interface `{}` is down or has no IPv4 address: bring it up, or set preferredNetworkInterface to another ({found})",
        name.escape_debug()
    )]
    Unusable {
        /// The name.
        name: String,
        /// The interfaces with their addresses.
        found: String,
    },
    /// No address is as wished.
    #[error(
        "no usable address {}matches preferredNetworkIp `{}`: correct it to fit one of those that there are ({found})",
        interface.as_ref().map(|name| format!("of network interface `{}` ", name.escape_debug())).unwrap_or_default(),
        wanted.escape_debug()
    )]
    Unmatched {
        /// The preferred interface.
        interface: Option<String>,
        /// The wish.
        wanted: String,
        /// The interfaces with their addresses.
        found: String,
    },
}

impl HostError {
    fn unmet(interfaces: &[Interface], preference: &Preference) -> HostError {
        let found: Vec<String> = interfaces.iter().map(ToString::to_string).collect();
        let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
        let usable = |interface: &&Interface| interface.up && !interface.addresses.is_empty();
        if let Some(name) = preference.interface.clone() {
            let mut named = interfaces.iter().filter(|interface| interface.name == name).peekable();
            if named.peek().is_none() {
                return HostError::Missing { name, found };
            }
            if named.find(usable).is_none() {
                return HostError::Unusable { name, found };
            }
        }
        let wanted = preference.ip.clone().unwrap_or_default();
        HostError::Unmatched { interface: preference.interface.clone(), wanted, found }
    }
}

#[cfg(test)]
mod tests {
    use super::{INTERFACE_VARIABLE, IP_VARIABLE, Interface, Preference, choose};
    use expect_test::expect;

    /// Each line is an interface: index, name, flags (`down`, `p2p`), addresses.
    fn machine(text: &str) -> Vec<Interface> {
        let interface = |line: &str| {
            let mut words = line.split_whitespace();
            let index = words.next().unwrap().parse().unwrap();
            let mut interface = Interface::new(words.next().unwrap(), index, []);
            for word in words {
                match word {
                    "down" => interface.up = false,
                    "p2p" => interface.point_to_point = true,
                    address => interface.addresses.push(address.parse().unwrap()),
                }
            }
            interface
        };
        text.split(';').map(str::trim).filter(|line| !line.is_empty()).map(interface).collect()
    }

    fn answer(machine_text: &str, interface: &str, ip: &str) -> String {
        let wish = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let preference = Preference { interface: wish(interface), ip: wish(ip) };
        match choose(&machine(machine_text), &preference) {
            Ok(host) => host.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn without_a_preference() {
        let cases = [
            (
                "a laptop without network",
                "1 lo 127.0.0.1",
                "127.0.0.1 (no network interface has an IPv4 address)",
            ),
            ("nothing at all", "", "127.0.0.1 (no network interface has an IPv4 address)"),
            ("a container", "1 lo 127.0.0.1; 7 eth0 172.17.0.2", "172.17.0.2 (eth0)"),
            (
                "a pod with IPv6 only",
                "1 lo 127.0.0.1; 7 eth0",
                "127.0.0.1 (no network interface has an IPv4 address)",
            ),
            ("the lowest index, not the order", "3 eth1 10.0.0.3; 2 eth0 10.0.0.2", "10.0.0.2 (eth0)"),
            ("the first address of an interface", "2 eth0 10.0.0.9 10.0.0.2", "10.0.0.9 (eth0)"),
            ("what is down does not count", "2 eth0 down 10.0.0.2; 3 wlan0 10.0.0.3", "10.0.0.3 (wlan0)"),
            (
                "a host of containers",
                "2 docker0 172.17.0.1; 3 br-4f2a 172.18.0.1; 4 veth1 10.1.1.1; 5 eth0 192.0.2.7",
                "192.0.2.7 (eth0)",
            ),
            (
                "a host of virtual machines",
                "2 virbr0 192.168.122.1; 3 vboxnet0 192.168.56.1; 4 br0 192.0.2.7",
                "192.0.2.7 (br0)",
            ),
            (
                "only bridges",
                "1 lo 127.0.0.1; 3 docker0 172.17.0.1; 2 virbr0 192.168.122.1",
                "192.168.122.1 (virbr0)",
            ),
            (
                "tunnels behind cables",
                "2 tun0 10.8.0.2; 3 link p2p 10.9.0.2; 4 eth0 192.0.2.7",
                "192.0.2.7 (eth0)",
            ),
            ("a tunnel before a bridge", "2 docker0 172.17.0.1; 3 wg0 10.8.0.2", "10.8.0.2 (wg0)"),
            (
                "an address from a server before a self-assigned one",
                "2 eth0 169.254.3.4; 3 wlan0 192.0.2.7",
                "192.0.2.7 (wlan0)",
            ),
            ("a self-assigned one before none", "1 lo 127.0.0.1; 2 eth0 169.254.3.4", "169.254.3.4 (eth0)"),
            ("sub-interfaces may move away", "2 eth0:1 10.0.0.100; 2 eth0 10.0.0.2", "10.0.0.2 (eth0)"),
            (
                "the loopback's other addresses",
                "1 lo 127.0.0.1 10.99.0.1",
                "127.0.0.1 (no network interface has an IPv4 address)",
            ),
            (
                "an address that is none",
                "2 eth0 0.0.0.0",
                "127.0.0.1 (no network interface has an IPv4 address)",
            ),
        ];
        for (what, machine, expected) in cases {
            assert_eq!(answer(machine, "", ""), expected, "{what}");
        }
    }

    const HOST: &str = "1 lo 127.0.0.1; 2 eth0 192.0.2.7 192.0.2.8; 2 eth0:1 192.0.2.100; 3 eth1 10.0.0.17 10.0.0.1; \
        4 docker0 172.17.0.1; 5 wlan0 down 10.0.9.9; 6 eth2";

    #[test]
    fn with_a_preference() {
        let cases = [
            ("eth1", "", "10.0.0.17 (eth1)"),
            ("docker0", "", "172.17.0.1 (docker0)"),
            ("eth0:1", "", "192.0.2.100 (eth0:1)"),
            ("lo", "", "127.0.0.1 (lo)"),
            ("", "10.0.", "10.0.0.17 (eth1)"),
            ("", "10.0.0.1", "10.0.0.1 (eth1)"),
            ("", "1", "192.0.2.7 (eth0)"),
            ("", "172.", "172.17.0.1 (docker0)"),
            ("", r".*\.8", "192.0.2.8 (eth0)"),
            ("", r"10\.\d+\.0\.1|nothing", "10.0.0.1 (eth1)"),
            ("", r"192\.0\.2\.(7|8)", "192.0.2.7 (eth0)"),
            ("", "192.0.2.100", "192.0.2.100 (eth0:1)"),
            ("", "127.0.0.1", "127.0.0.1 (lo)"),
            ("eth0", "192.0.2.8", "192.0.2.8 (eth0)"),
            ("eth0", r".*8", "192.0.2.8 (eth0)"),
        ];
        for (interface, ip, expected) in cases {
            assert_eq!(answer(HOST, interface, ip), expected, "{interface} {ip}");
        }
    }

    #[test]
    fn a_preference_that_nothing_fits_is_an_error_that_lists_what_there_is() {
        let cases = [
            (HOST, "eth9", ""),
            (HOST, "wlan0", ""),
            (HOST, "eth2", ""),
            (HOST, "eth0", "10."),
            (HOST, "", "10.1."),
            (HOST, "", "127."),
            (HOST, "", "2.7"),
            ("1 lo 127.0.0.1", "", "10."),
            ("", "eth0", ""),
            (HOST, "", "*.1"),
            (HOST, "", "10)|(10"),
        ];
        let answers = cases.map(|(machine, interface, ip)| answer(machine, interface, ip) + "\n");
        expect![[r#"
            error: no network interface called `eth9` has an address: set preferredNetworkInterface to one of those that there are (lo 127.0.0.1, eth0 192.0.2.7 and 192.0.2.8, eth0:1 192.0.2.100, eth1 10.0.0.17 and 10.0.0.1, docker0 172.17.0.1, wlan0 10.0.9.9 (down), eth2 without an IPv4 address)
            error: network interface `wlan0` is down or has no IPv4 address: bring it up, or set preferredNetworkInterface to another (lo 127.0.0.1, eth0 192.0.2.7 and 192.0.2.8, eth0:1 192.0.2.100, eth1 10.0.0.17 and 10.0.0.1, docker0 172.17.0.1, wlan0 10.0.9.9 (down), eth2 without an IPv4 address)
            error: network interface `eth2` is down or has no IPv4 address: bring it up, or set preferredNetworkInterface to another (lo 127.0.0.1, eth0 192.0.2.7 and 192.0.2.8, eth0:1 192.0.2.100, eth1 10.0.0.17 and 10.0.0.1, docker0 172.17.0.1, wlan0 10.0.9.9 (down), eth2 without an IPv4 address)
            error: no usable address of network interface `eth0` matches preferredNetworkIp `10.`: correct it to fit one of those that there are (lo 127.0.0.1, eth0 192.0.2.7 and 192.0.2.8, eth0:1 192.0.2.100, eth1 10.0.0.17 and 10.0.0.1, docker0 172.17.0.1, wlan0 10.0.9.9 (down), eth2 without an IPv4 address)
            error: no usable address matches preferredNetworkIp `10.1.`: correct it to fit one of those that there are (lo 127.0.0.1, eth0 192.0.2.7 and 192.0.2.8, eth0:1 192.0.2.100, eth1 10.0.0.17 and 10.0.0.1, docker0 172.17.0.1, wlan0 10.0.9.9 (down), eth2 without an IPv4 address)
            error: no usable address matches preferredNetworkIp `127.`: correct it to fit one of those that there are (lo 127.0.0.1, eth0 192.0.2.7 and 192.0.2.8, eth0:1 192.0.2.100, eth1 10.0.0.17 and 10.0.0.1, docker0 172.17.0.1, wlan0 10.0.9.9 (down), eth2 without an IPv4 address)
            error: no usable address matches preferredNetworkIp `2.7`: correct it to fit one of those that there are (lo 127.0.0.1, eth0 192.0.2.7 and 192.0.2.8, eth0:1 192.0.2.100, eth1 10.0.0.17 and 10.0.0.1, docker0 172.17.0.1, wlan0 10.0.9.9 (down), eth2 without an IPv4 address)
            error: no usable address matches preferredNetworkIp `10.`: correct it to fit one of those that there are (lo 127.0.0.1)
            error: no network interface called `eth0` has an address: set preferredNetworkInterface to one of those that there are (none)
            error: preferredNetworkIp `*.1` is neither the beginning of an address nor a regular expression: uncounted repetition operator must be applied to a sub-expression
            error: preferredNetworkIp `10)|(10` is neither the beginning of an address nor a regular expression: found closing ')' without matching '('
        "#]].assert_eq(&answers.concat());
    }

    #[test]
    fn settings_go_before_the_environment() {
        let env = |name: &str| match name {
            INTERFACE_VARIABLE => Some("eth1".to_owned()),
            IP_VARIABLE => Some("10.".to_owned()),
            _ => None,
        };
        let both = Preference { interface: Some("eth1".into()), ip: Some("10.".into()) };
        assert_eq!(Preference::default().or_env(env), both);
        let own = Preference { interface: Some("eth0".into()), ip: None };
        assert_eq!(own.or_env(env), Preference { interface: Some("eth0".into()), ..both });
        assert_eq!(Preference::default().or_env(|_| Some(" ".into())), Preference::default());
    }
}
