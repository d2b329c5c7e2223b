//! The shard as JSON, as Java hands it to scripts and HTTP services.

use crate::job::Shard;

/// The shard as Java's script jobs get it, to the byte: these keys in this order, no parameter if there is
/// none, and the characters escaped that are not safe in HTML. What came along with a trigger, which Java has
/// not, stands at the end.
pub(super) fn json(shard: &Shard) -> String {
    let mut fields = vec![
        format!("\"jobName\":{}", text(&shard.job)),
        format!("\"taskId\":{}", text(&shard.task_id)),
        format!("\"shardingTotalCount\":{}", shard.total),
        format!("\"jobParameter\":{}", text(&shard.job_parameter)),
        format!("\"shardingItem\":{}", shard.item),
    ];
    fields.extend(shard.parameter.as_deref().map(|it| format!("\"shardingParameter\":{}", text(it))));
    fields.extend(shard.trigger_parameter.as_deref().map(|it| format!("\"triggerParameter\":{}", text(it))));
    format!("{{{}}}", fields.join(","))
}

fn text(text: &str) -> String {
    let mut json = String::from('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            '<' | '>' | '&' | '=' | '\'' | '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                json.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// The same document for a header, which can hold visible ASCII only. Java sends other characters as they
/// are, and they arrive as something else; escaped, every reader of JSON gets back what was meant.
#[cfg(any(feature = "http", test))]
pub(super) fn header(shard: &Shard) -> String {
    let json = json(shard);
    let mut ascii = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            ' '..='~' => ascii.push(c),
            c => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    ascii.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_context_is_what_java_passes() {
        let mut shard = testing::shard("myJob", 0, 3);
        shard.task_id = "t".into();
        shard.parameter = Some("Beijing".into());
        assert_eq!(
            json(&shard),
            r#"{"jobName":"myJob","taskId":"t","shardingTotalCount":3,"jobParameter":"","shardingItem":0,"shardingParameter":"Beijing"}"#
        );
        shard.task_id = "myJob@-@0,1@-@READY@-@192.168.1.5@-@12345".into();
        shard.job_parameter = "it's <b>&=\"q\"中".into();
        shard.parameter = None;
        assert_eq!(
            json(&shard),
            r#"{"jobName":"myJob","taskId":"myJob@-@0,1@-@READY@-@192.168.1.5@-@12345","shardingTotalCount":3,"jobParameter":"it\u0027s \u003cb\u003e\u0026\u003d\"q\"中","shardingItem":0}"#
        );
    }

    #[test]
    fn what_came_along_with_a_trigger_stands_at_the_end() {
        let mut shard = testing::shard("myJob", 0, 3);
        shard.task_id = "t".into();
        shard.trigger_parameter = Some("day=\"1\"".into());
        assert_eq!(
            json(&shard),
            r#"{"jobName":"myJob","taskId":"t","shardingTotalCount":3,"jobParameter":"","shardingItem":0,"triggerParameter":"day\u003d\"1\""}"#
        );
    }

    proptest::proptest! {
        #[test]
        fn every_text_comes_back_from_a_header(parameter in ".*", item in proptest::option::of(".*")) {
            let mut shard = testing::shard("myJob", 0, 3);
            (shard.job_parameter, shard.parameter) = (parameter.as_str().into(), item.clone());
            let header = header(&shard);
            assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{header}");
            let read: serde_json::Value = serde_json::from_str(&header).unwrap();
            assert_eq!(read, serde_json::from_str::<serde_json::Value>(&json(&shard)).unwrap());
            assert_eq!(read["jobParameter"], parameter.as_str());
            assert_eq!(read.get("shardingParameter").and_then(|it| it.as_str()), item.as_deref());
        }
    }

    #[test]
    fn in_a_header_it_is_the_same_document_in_visible_ascii() {
        let mut shard = testing::shard("myJob", 0, 3);
        shard.task_id = "t".into();
        assert_eq!(header(&shard), json(&shard), "nothing to escape");
        shard.job_parameter = "中 \u{7f}\r\n\0é😀\\".into();
        assert_eq!(
            header(&shard),
            r#"{"jobName":"myJob","taskId":"t","shardingTotalCount":3,"jobParameter":"\u4e2d \u007f\r\n\u0000\u00e9\ud83d\ude00\\","shardingItem":0}"#
        );
    }
}
