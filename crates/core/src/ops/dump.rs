//! The text that the dump port of Java's processes gives: every node of a job, with addresses masked.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::JobTree;

/// Every node below the job, depth first, the greatest name first: `path | value`. Addresses become `ip1`,
/// `ip2` and so on, in the order in which they appear. Java masks by replacing text, so that there an
/// address that begins another one garbles it; here an address is masked as a whole.
///
/// ```
/// use elasticjob_core::node::Node;
/// use elasticjob_core::ops::JobTree;
/// use elasticjob_core::ops::dump::dump;
/// use elasticjob_core::tree::Tree;
/// use jiff::Timestamp;
///
/// let mut tree = Tree::default();
/// let session = tree.open_session();
/// let ops = ["10.0.0.1", "10.0.0.12"].map(|ip| Node::Server(ip.into()).create("ENABLED"));
/// tree.commit(session, "/nightly", &ops, Timestamp::UNIX_EPOCH).unwrap();
/// let text = dump(&JobTree::new("nightly", tree.snapshot("/nightly")));
/// assert_eq!(text, "/nightly/servers | \n/nightly/servers/ip1 | ENABLED\n/nightly/servers/ip2 | ENABLED\n");
/// ```
pub fn dump(tree: &JobTree) -> String {
    // By the names on the way, so that `a-2` does not come between `a` and `a/b`.
    let by_names: BTreeMap<Vec<&str>, &str> = tree
        .entries()
        .filter(|it| !it.path.is_empty())
        .map(|it| (it.path.split('/').skip(1).collect(), it.data.as_str()))
        .collect();
    let mut paths: Vec<&Vec<&str>> = by_names.keys().collect();
    // Greater names first, but a parent before its children.
    paths.sort_by(|a, b| {
        let differ = a.iter().zip(b.iter()).find(|(a, b)| a != b);
        differ.map_or_else(|| a.len().cmp(&b.len()), |(a, b)| b.encode_utf16().cmp(a.encode_utf16()))
    });
    let records: Vec<String> =
        paths.iter().map(|path| format!("/{}/{} | {}", tree.name, path.join("/"), by_names[*path])).collect();
    let mut text = mask(&records.join("\n"));
    text.push('\n');
    text
}

/// Replaces every IPv4 address by `ip1`, `ip2` and so on, the same one by the same.
fn mask(text: &str) -> String {
    let mut known: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        masked.push_str(&rest[..at]);
        let run = rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len() - at);
        let number = rest[at..at + run].trim_end_matches('.');
        match number.parse::<Ipv4Addr>() {
            Ok(address) => {
                let next = known.len() + 1;
                masked.push_str(&format!("ip{}", known.entry(address).or_insert(next)));
            }
            Err(_) => masked.push_str(number),
        }
        rest = &rest[at + number.len()..];
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;
    use crate::tree::Tree;
    use jiff::Timestamp;

    #[test]
    fn an_address_that_begins_another_is_not_mistaken_for_it() {
        let masked = mask("10.0.0.12 10.0.0.1, 10.0.0.12@-@7. 1.2.3 256.1.1.1 v1.2.3.4.5 x10.0.0.1.");
        assert_eq!(masked, "ip1 ip2, ip1@-@7. 1.2.3 256.1.1.1 v1.2.3.4.5 xip2.");
    }

    #[test]
    fn parents_come_before_children_and_greater_names_before_lesser_ones() {
        let mut tree = Tree::default();
        let session = tree.open_session();
        let ops =
            [Node::Owner(2).create("i"), Node::Running(10).create("i"), Node::Config.create("a: 1\nb: 2\n")];
        tree.commit(session, "/j", &ops, Timestamp::UNIX_EPOCH).unwrap();
        expect_test::expect![[r#"
            /j/sharding | 
            /j/sharding/2 | 
            /j/sharding/2/instance | i
            /j/sharding/10 | 
            /j/sharding/10/running | i
            /j/config | a: 1
            b: 2

        "#]]
        .assert_eq(&dump(&JobTree::new("j", tree.snapshot("/j"))));
        assert_eq!(dump(&JobTree::new("none", vec![])), "\n");
    }
}
