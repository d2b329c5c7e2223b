//! `${VAR}` and `${VAR:default}` in a value.

use super::error::Shown;

/// Defaults within defaults end here.
const DEPTH_MAX: usize = 8;

/// What is wrong with a variable, and which characters of the text it takes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) start: usize,
    pub(super) width: usize,
    pub(super) reason: String,
}

/// Puts the variables' values into a text. `$${` stands for `${`; a default may have variables of its own.
///
/// What a variable holds is taken as it is and not expanded again.
pub(super) fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, Flaw> {
    if !text.contains("${") {
        return Ok(text.to_owned());
    }
    let mut out = String::new();
    append(text, env, 0, &mut out).map_err(|flaw| Flaw {
        start: text[..flaw.start].chars().count(),
        width: text[flaw.start..flaw.start + flaw.width].chars().count(),
        reason: flaw.reason,
    })?;
    Ok(out)
}

/// Offsets in flaws are bytes here.
fn append(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
    depth: usize,
    out: &mut String,
) -> Result<(), Flaw> {
    let mut at = 0;
    while let Some(dollar) = text[at..].find('$').map(|found| at + found) {
        out.push_str(&text[at..dollar]);
        let rest = &text[dollar..];
        if rest.starts_with("$${") {
            out.push_str("${");
            at = dollar + 3;
        } else if rest.starts_with("${") {
            let width = length(rest).ok_or_else(|| Flaw {
                start: dollar,
                width: rest.len(),
                reason: "has `${` without `}`: close it, or write `$${` for the characters themselves"
                    .to_owned(),
            })?;
            let flaw = |reason| Flaw { start: dollar, width, reason };
            let (name, default) = split(&rest[2..width - 1]);
            if !is_name(name) {
                return Err(flaw(format!(
                    "has `${{{}}}`, which names no variable: names have letters, digits and `_`; write `$${{` for the characters themselves",
                    Shown(name)
                )));
            }
            match (env(name), default) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(_)) if depth == DEPTH_MAX => {
                    return Err(flaw("nests defaults too deeply: set the variable".to_owned()));
                }
                (None, Some(default)) => {
                    let offset = dollar + 2 + name.len() + 1;
                    append(default, env, depth + 1, out)
                        .map_err(|flaw| Flaw { start: offset + flaw.start, ..flaw })?;
                }
                (None, None) => {
                    return Err(flaw(format!(
                        "needs the environment variable {name}, which is not set: set it, or write a default as in ${{{name}:default}}"
                    )));
                }
            }
            at = dollar + width;
        } else {
            out.push('$');
            at = dollar + 1;
        }
    }
    out.push_str(&text[at..]);
    Ok(())
}

/// Bytes from `${` to its `}`, inner variables included.
fn length(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        at += if rest.starts_with("$${") {
            3
        } else if rest.starts_with("${") {
            open += 1;
            2
        } else if rest.starts_with('}') {
            open -= 1;
            if open == 0 {
                return Some(at + 1);
            }
            1
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
    }
    None
}

fn split(inner: &str) -> (&str, Option<&str>) {
    match inner.split_once(':') {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::expand;

    fn check(text: &str, expected: &str) {
        let env = |name: &str| match name {
            "CITY" => Some("Wien".to_owned()),
            "EMPTY" => Some(String::new()),
            "CLEVER" => Some("${CITY}: {x}".to_owned()),
            _ => None,
        };
        let found = expand(text, &env).unwrap_or_else(|flaw| {
            let meant: String = text.chars().skip(flaw.start).take(flaw.width).collect();
            format!("[{meant}] {}", flaw.reason)
        });
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn variables_take_their_values() {
        check("plain", "plain");
        check("${CITY}", "Wien");
        check("in ${CITY}, ${CITY}!", "in Wien, Wien!");
        check("<${EMPTY}>", "<>");
    }

    #[test]
    fn defaults_count_only_where_the_variable_is_not_set() {
        check("${CITY:Graz}", "Wien");
        check("${EMPTY:Graz}", "");
        check("${NONE:Graz}", "Graz");
        check("${NONE:}", "");
        check("${NONE:-1}", "-1");
        check("${NONE:zookeeper://a:2181}", "zookeeper://a:2181");
        check("${NONE:北京}", "北京");
        check("${NONE:${CITY}}", "Wien");
        check("${NONE:${NADA:x}y}z", "xyz");
    }

    #[test]
    fn a_doubled_dollar_is_the_character_itself() {
        check("$${CITY}", "${CITY}");
        check("$$${CITY}", "$${CITY}");
        check("${NONE:$${x}", "${x");
        check("$CITY $$ $ 100$", "$CITY $$ $ 100$");
    }

    #[test]
    fn a_value_is_not_expanded_again() {
        check("${CLEVER}", "${CITY}: {x}");
    }

    #[test]
    fn flaws_name_the_variable_and_the_remedy() {
        check(
            "ö ${NONE} x",
            "[${NONE}] needs the environment variable NONE, which is not set: set it, or write a default as in ${NONE:default}",
        );
        check(
            "a ${NONE:ü${NADA}}",
            "[${NADA}] needs the environment variable NADA, which is not set: set it, or write a default as in ${NADA:default}",
        );
        check(
            "a ${CITY",
            "[${CITY] has `${` without `}`: close it, or write `$${` for the characters themselves",
        );
        check(
            "${zk.host}",
            "[${zk.host}] has `${zk.host}`, which names no variable: names have letters, digits and `_`; write `$${` for the characters themselves",
        );
        check(
            "${}",
            "[${}] has `${}`, which names no variable: names have letters, digits and `_`; write `$${` for the characters themselves",
        );
    }
}
