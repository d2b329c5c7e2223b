//! The names of settings: two spellings of each, and the one that was probably meant.

use std::borrow::Cow;

use super::error::Shown;

/// Nobody misspells a longer key; comparing one would only cost time.
const COMPARED_MAX: usize = 64;

/// `sharding-total-count` as `shardingTotalCount`; any other key as it is.
pub(super) fn camel(key: &str) -> Cow<'_, str> {
    let kebab = key.contains('-')
        && !key.starts_with('-')
        && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !kebab {
        return Cow::Borrowed(key);
    }
    let mut out = String::with_capacity(key.len());
    for (at, word) in key.split('-').enumerate() {
        let first = word.get(..1).unwrap_or_default();
        out.push_str(&if at == 0 { first.to_owned() } else { first.to_ascii_uppercase() });
        out.push_str(word.get(1..).unwrap_or_default());
    }
    Cow::Owned(out)
}

/// Says that a key is unknown, which one is like it, and which ones there are.
pub(super) fn unknown(key: &str, owner: &str, known: &[&str]) -> String {
    let mut reason = format!("is no setting of {owner}: ");
    if let Some(near) = nearest(key, known) {
        reason.push_str(&format!("did you mean {}? ", Shown(near)));
    }
    reason.push_str(&format!("known are {}", known.join(", ")));
    reason
}

fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let bare = |key: &str| -> Vec<char> {
        key.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
    };
    let key = bare(key);
    if key.is_empty() || key.len() > COMPARED_MAX {
        return None;
    }
    let (distance, near) = known
        .iter()
        .map(|known| (distance(&key, &bare(known)), *known))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= 2.max(near.len() / 3)).then_some(near)
}

/// How many letters must be changed, added or dropped to make one word of the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{camel, nearest};

    #[test]
    fn kebab_becomes_camel() {
        let cases = [
            ("cron", "cron"),
            ("time-zone", "timeZone"),
            ("sharding-total-count", "shardingTotalCount"),
            ("shardingTotalCount", "shardingTotalCount"),
            ("sharding-totalCount", "sharding-totalCount"),
            ("-x", "-x"),
            ("a--b", "aB"),
            ("x-", "x"),
            ("ö-b", "ö-b"),
            ("", ""),
        ];
        for (key, expected) in cases {
            assert_eq!(camel(key), expected);
        }
    }

    #[test]
    fn the_nearest_key_is_the_one_that_was_meant() {
        let known = [
            "cron",
            "timeZone",
            "shardingTotalCount",
            "shardingItemParameters",
            "failover",
            "misfire",
            "label",
        ];
        let cases = [
            ("crom", Some("cron")),
            ("Cron", Some("cron")),
            ("timezone", Some("timeZone")),
            ("time_zone", Some("timeZone")),
            ("shardingCount", Some("shardingTotalCount")),
            ("fail-over", Some("failover")),
            ("missfire", Some("misfire")),
            ("monitoring", None),
            ("", None),
        ];
        for (key, expected) in cases {
            assert_eq!(nearest(key, &known), expected, "{key}");
        }
    }
}
