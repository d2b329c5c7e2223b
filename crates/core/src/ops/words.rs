//! How things are said: lists of shards, times, names that are spelled alike, differences of texts.

use std::collections::BTreeSet;

use elasticjob_cron::Zone;
use jiff::Timestamp;

/// `shard 3`, or `shards 0, 2-4`.
pub(super) fn shards(items: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &item in items {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == item => *last = item,
            _ => ranges.push((item, item)),
        }
    }
    let range = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    let listed: Vec<String> = ranges.iter().map(range).collect();
    format!("shard{} {}", if items.len() == 1 { "" } else { "s" }, listed.join(", "))
}

pub(super) fn shards_up_to(total: u32) -> String {
    match total {
        0 => "no shards".to_owned(),
        1 => "only shard 0".to_owned(),
        _ => format!("shards 0 to {}", total - 1),
    }
}

pub(super) fn known(names: &[String]) -> String {
    match names {
        [] => "there is none".to_owned(),
        names => format!("known: {}", names.join(", ")),
    }
}

pub(super) fn meant(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!(" (did you mean `{}`?)", near.join("`, `")),
    }
}

pub(super) fn time(at: Timestamp, zone: &Zone) -> String {
    at.to_zoned(zone.time_zone().clone()).strftime("%F %H:%M:%S %Z").to_string()
}

/// How long, roughly: `40 s`, `12 min`, `3 h`, `5 d`.
pub(super) fn lasting(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The names that are spelled most like this one: at most three, best first.
///
/// ```
/// use elasticjob_core::ops::near;
///
/// assert_eq!(near("nihgtly", ["nightly", "hourly", "weekly"]), ["nightly"]);
/// ```
pub fn near<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let allowed = (name.chars().count() / 3).max(1);
    let close = |it: &'a str| {
        let (a, b) = (name.to_lowercase(), it.to_lowercase());
        let within = b.contains(&a) || a.contains(&b);
        let steps = if within { 1 } else { distance(&a, &b) };
        (steps <= allowed).then_some((steps, it))
    };
    let mut found: Vec<(usize, &str)> =
        names.into_iter().filter(|it| !it.is_empty()).filter_map(close).collect();
    found.sort_unstable();
    found.into_iter().take(3).map(|(_, it)| it.to_owned()).collect()
}

/// Texts that differ in more lines than this by this are not compared line by line.
const DIFF_MAX: usize = 1_000_000;

/// How many letters to change, drop, insert or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The lines in which two texts differ: `- ` those that are gone, `+ ` those that are new.
///
/// ```
/// use elasticjob_core::ops::diff;
///
/// assert_eq!(diff("a\nb\nc\n", "a\nx\nc\n"), ["- b", "+ x"]);
/// ```
pub fn diff(before: &str, after: &str) -> Vec<String> {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    let same = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
    if a.len().saturating_mul(b.len()) > DIFF_MAX {
        let (gone, new) = (a.iter().map(|it| format!("- {it}")), b.iter().map(|it| format!("+ {it}")));
        return gone.chain(new).collect();
    }
    // Lengths of the longest common sequences of what follows.
    let mut common = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] =
                if a[i] == b[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(format!("- {}", a[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", b[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_listed_as_ranges() {
        assert_eq!(shards(&[3].into()), "shard 3");
        assert_eq!(shards(&[0, 1, 4, 5, 6, 9].into()), "shards 0, 1, 4-6, 9");
    }

    #[test]
    fn names_are_near_if_a_slip_of_the_hand_lies_between() {
        let names = ["settle-orders", "settle-refunds", "nightly"];
        assert_eq!(near("setle-orders", names), ["settle-orders"]);
        assert_eq!(near("settle", names), ["settle-orders", "settle-refunds"]);
        assert_eq!(near("Nightly", names), ["nightly"]);
        assert!(near("backup", names).is_empty());
    }

    #[test]
    fn a_difference_leaves_out_what_is_common() {
        assert!(diff("a\nb", "a\nb\n").is_empty());
        assert_eq!(diff("", "x"), ["+ x"]);
        let long = |start: usize| (start..start + 2000).map(|it| format!("{it}\n")).collect::<String>();
        assert_eq!(diff(&long(0), &long(2000)).len(), 4000);
        assert_eq!(diff(&long(0), &format!("{}x\n", long(0))), ["+ x"]);
        assert_eq!(diff("cron: 1\nn: 2\n", "cron: 3\nm: 9\nn: 2\n"), ["- cron: 1", "+ cron: 3", "+ m: 9"]);
    }
}
