//! stub
#[derive(Debug, thiserror::Error)]
#[error("x")]
/// e
pub struct HostError;
/// p
#[derive(Clone, Debug, Default)]
pub struct Preference {
    /// i
    pub interface: Option<String>,
    /// i
    pub ip: Option<String>,
}
/// d
pub fn discover(_: &Preference) -> Result<std::net::Ipv4Addr, HostError> {
    Ok(std::net::Ipv4Addr::LOCALHOST)
}
