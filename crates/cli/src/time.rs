//! Times as people write and read them.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// `2026-11-15 02:00:00`, in the zone of this machine.
pub(crate) fn show(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%F %H:%M:%S").to_string()
}

/// Reads `2026-11-15T02:00:00Z`, `2026-11-15 02:00` or `02:00`; without a zone, in that of this machine.
pub(crate) fn parse(text: &str) -> Result<Timestamp, String> {
    let zone = TimeZone::system();
    let local = |at: DateTime| at.to_zoned(zone.clone()).map(|it| it.timestamp()).ok();
    let today = || Zoned::now().with_time_zone(zone.clone()).date();
    let text = text.trim();
    text.parse::<Timestamp>()
        .ok()
        .or_else(|| text.parse::<Zoned>().ok().map(|it| it.timestamp()))
        .or_else(|| text.parse::<DateTime>().ok().and_then(local))
        .or_else(|| text.parse::<Time>().ok().and_then(|it| local(today().to_datetime(it))))
        .ok_or_else(|| format!("`{text}` is no time: write 2026-11-15T02:00:00Z, 2026-11-15 02:00 or 02:00"))
}
