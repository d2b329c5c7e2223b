//! Writes block mappings, lists and text byte for byte as SnakeYAML 2.2 does with its default options.
//!
//! Separate from the job's keys because quoting and folding are the same for every document of Java's.
//! Widths and positions count UTF-16 units, as Java's strings do: a line with emoji folds earlier than its characters suggest.

use super::resolve;

const WIDTH: usize = 80;
const STEP: usize = 2;
/// A key longer than this, its hidden `!!str` included, is written as `? key`.
const SIMPLE_KEY_UNITS_MAX: usize = 128;

/// How one text is going to be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// What a text's characters allow.
#[derive(Default)]
struct Analysis {
    multiline: bool,
    plain: bool,
    single_quoted: bool,
    literal: bool,
}

/// The document being written, and where its last line stands.
#[derive(Default)]
pub(super) struct Emitter {
    out: String,
    column: usize,
    /// The last thing written was white space.
    whitespace: bool,
    /// Nothing but indentation and indicators stands on the current line.
    indention: bool,
}

impl Emitter {
    pub(super) fn new() -> Self {
        Emitter { whitespace: true, indention: true, ..Emitter::default() }
    }

    /// The finished text, with a line feed at its end.
    pub(super) fn finish(mut self) -> String {
        self.break_to(0);
        self.out
    }

    /// `key: text`, with the key `indent` columns in.
    pub(super) fn pair(&mut self, indent: usize, key: &str, value: &str) {
        self.key(indent, key);
        self.text(indent + STEP, value, false);
    }

    /// `key: word`, for numbers and booleans, which need no quoting.
    pub(super) fn word(&mut self, key: &str, word: &str) {
        self.key(0, key);
        self.put(" ");
        self.put(word);
    }

    /// `key:` and one `- text` line for each item, not indented below the key.
    pub(super) fn list(&mut self, key: &str, items: &[String]) {
        self.key(0, key);
        for item in items {
            self.break_to(0);
            self.indicator("-", true, true);
            self.text(STEP, item, false);
        }
    }

    /// `key:` and a nested mapping of text to text.
    pub(super) fn map<'a>(&mut self, key: &str, entries: impl Iterator<Item = (&'a String, &'a String)>) {
        self.key(0, key);
        for (name, value) in entries {
            self.pair(STEP, name, value);
        }
    }

    /// Whole lines that somebody else wrote.
    pub(super) fn verbatim(&mut self, lines: &str) {
        self.break_to(0);
        self.out.push_str(lines);
        if !lines.ends_with('\n') {
            self.out.push('\n');
        }
        self.at_line_start();
    }

    fn key(&mut self, indent: usize, key: &str) {
        self.break_to(indent);
        if is_simple_key(key) {
            self.text(indent + STEP, key, true);
            self.indicator(":", false, false);
        } else {
            self.indicator("?", true, true);
            self.text(indent + STEP, key, false);
            self.break_to(indent);
            self.indicator(":", true, true);
        }
    }

    fn text(&mut self, indent: usize, text: &str, simple_key: bool) {
        if !resolve::is_printable(text) {
            self.indicator("!!binary", true, false);
            let encoded: Vec<u16> = resolve::base64(text.as_bytes()).encode_utf16().collect();
            return if simple_key {
                self.double_quoted(indent, &encoded, false);
            } else {
                self.literal(indent, &encoded);
            };
        }
        let units: Vec<u16> = text.encode_utf16().collect();
        match choose_style(text, simple_key) {
            Style::Plain => self.plain(indent, &units, !simple_key),
            Style::SingleQuoted => self.single_quoted(indent, &units, !simple_key),
            Style::DoubleQuoted => self.double_quoted(indent, &units, !simple_key),
            Style::Literal => self.literal(indent, &units),
        }
    }

    fn plain(&mut self, indent: usize, text: &[u16], split: bool) {
        if !self.whitespace {
            self.put(" ");
        }
        self.whitespace = false;
        self.indention = false;
        for (at, run) in runs(text) {
            let fold = split && run == [SPACE] && at > 0 && self.column > WIDTH;
            if fold {
                self.break_to(indent);
            } else {
                self.put_units(run);
            }
            self.whitespace = false;
            self.indention = false;
        }
    }

    fn single_quoted(&mut self, indent: usize, text: &[u16], split: bool) {
        self.indicator("'", true, false);
        for (at, run) in runs(text) {
            let inside = at > 0 && at + run.len() < text.len();
            if split && run == [SPACE] && inside && self.column > WIDTH {
                self.break_to(indent);
            } else {
                self.put(&string(run).replace('\'', "''"));
            }
        }
        self.indicator("'", false, false);
    }

    fn double_quoted(&mut self, indent: usize, text: &[u16], split: bool) {
        self.indicator("\"", true, false);
        let mut start = 0;
        let mut end = 0;
        while end <= text.len() {
            let unit = text.get(end).copied();
            if unit.is_none_or(|unit| !is_bare_in_double_quotes(unit)) {
                self.put_units(text.get(start..end).unwrap_or_default());
                start = end;
                if let Some(unit) = unit {
                    let length = if is_high_surrogate(unit) { 2.min(text.len() - end) } else { 1 };
                    self.put(&escape(&string(&text[end..end + length])));
                    end += length - 1;
                    start = end + 1;
                }
            }
            let inside = 0 < end && end + 1 < text.len();
            let at_gap = unit == Some(SPACE) || start >= end;
            if split && inside && at_gap && self.column + end > WIDTH + start {
                self.put_units(text.get(start..end).unwrap_or_default());
                start = start.max(end);
                self.put("\\");
                self.break_to(indent);
                self.whitespace = false;
                self.indention = false;
                if text.get(start) == Some(&SPACE) {
                    self.put("\\");
                }
            }
            end += 1;
        }
        self.indicator("\"", false, false);
    }

    fn literal(&mut self, indent: usize, text: &[u16]) {
        self.indicator(&format!("|{}", literal_hints(text)), true, false);
        self.line_break('\n');
        let text = string(text);
        for line in text.split_inclusive(is_break) {
            let content = line.trim_end_matches(is_break);
            if !content.is_empty() {
                self.break_to(indent);
                self.put(content);
            }
            self.line_break(line.chars().next_back().filter(|last| is_break(*last)).unwrap_or('\n'));
        }
    }

    fn indicator(&mut self, indicator: &str, need_whitespace: bool, indention: bool) {
        if need_whitespace && !self.whitespace {
            self.put(" ");
        }
        self.whitespace = false;
        self.indention = self.indention && indention;
        self.put(indicator);
    }

    /// Moves to column `indent` of a fresh line, or of this one if nothing stands there yet.
    fn break_to(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break('\n');
        }
        if self.column < indent {
            self.whitespace = true;
            self.put(&" ".repeat(indent - self.column));
        }
    }

    fn line_break(&mut self, with: char) {
        self.out.push(with);
        self.at_line_start();
    }

    fn at_line_start(&mut self) {
        self.whitespace = true;
        self.indention = true;
        self.column = 0;
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.encode_utf16().count();
    }

    fn put_units(&mut self, units: &[u16]) {
        self.out.push_str(&string(units));
        self.column += units.len();
    }
}

const SPACE: u16 = b' ' as u16;

fn is_simple_key(key: &str) -> bool {
    if !resolve::is_printable(key) {
        return "!!binary".len() + key.len().div_ceil(3) * 4 < SIMPLE_KEY_UNITS_MAX;
    }
    let units = key.encode_utf16().count() + "!!str".len();
    units < SIMPLE_KEY_UNITS_MAX && !key.is_empty() && !key.contains(is_break)
}

fn choose_style(text: &str, simple_key: bool) -> Style {
    let allowed = analyse(text);
    if allowed.multiline {
        return if allowed.literal && !simple_key { Style::Literal } else { Style::DoubleQuoted };
    }
    if allowed.plain && resolve::resolve(text) == resolve::Implicit::Text && !resembles_octal(text) {
        Style::Plain
    } else if allowed.single_quoted {
        Style::SingleQuoted
    } else {
        Style::DoubleQuoted
    }
}

/// Java quotes `08` although it reads it as text.
fn resembles_octal(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0') && text.chars().all(|c| c == '_' || c.is_ascii_digit())
}

fn analyse(text: &str) -> Analysis {
    if text.is_empty() {
        return Analysis { single_quoted: true, ..Analysis::default() };
    }
    let chars: Vec<char> = text.chars().collect();
    let break_space = chars.windows(2).any(|pair| is_break(pair[0]) && pair[1] == ' ');
    let space_break = chars.windows(2).any(|pair| pair[0] == ' ' && is_break(pair[1]));
    let special = chars
        .iter()
        .any(|c| !(*c == '\n' || matches!(c, ' '..='~') || resolve::is_printable_beyond_ascii(*c)));
    let (first, last) = (chars[0], chars[chars.len() - 1]);
    let ragged = first == ' ' || is_break(first) || last == ' ' || is_break(last);
    let single_line = !break_space && !space_break && !special;
    Analysis {
        multiline: text.contains(is_break),
        plain: single_line && !ragged && !has_block_indicators(text, &chars),
        single_quoted: single_line,
        literal: last != ' ' && !space_break && !special,
    }
}

/// Would a plain spelling of the text, which is a single line, be taken for structure or a comment?
fn has_block_indicators(text: &str, chars: &[char]) -> bool {
    let blank_after = |at: usize| chars.get(at + 1).is_none_or(|next| matches!(next, '\0' | ' ' | '\t'));
    let leading = match chars[0] {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
            true
        }
        '?' | ':' | '-' => blank_after(0),
        _ => false,
    };
    let inner = (1..chars.len()).any(|at| match chars[at] {
        ':' => blank_after(at),
        '#' => matches!(chars[at - 1], '\0' | ' ' | '\t'),
        _ => false,
    });
    leading || inner || text.starts_with("---") || text.starts_with("...")
}

/// Indentation and chomping marks behind the `|`.
fn literal_hints(text: &[u16]) -> String {
    let is_break_unit = |unit: &u16| char::from_u32(u32::from(*unit)).is_some_and(is_break);
    let mut hints = String::new();
    if text.first().is_some_and(|first| *first == SPACE || is_break_unit(first)) {
        hints.push_str(&STEP.to_string());
    }
    let mut from_end = text.iter().rev();
    if !from_end.next().is_some_and(is_break_unit) {
        hints.push('-');
    } else if from_end.next().is_none_or(is_break_unit) {
        hints.push('+');
    }
    hints
}

/// The text in turns of spaces and other characters, each with its position.
fn runs(text: &[u16]) -> impl Iterator<Item = (usize, &[u16])> {
    text.chunk_by(|a, b| (*a == SPACE) == (*b == SPACE)).scan(0, |at, run| {
        let start = *at;
        *at += run.len();
        Some((start, run))
    })
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_high_surrogate(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_bare_in_double_quotes(unit: u16) -> bool {
    (0x20..=0x7E).contains(&unit) && unit != u16::from(b'"') && unit != u16::from(b'\\')
}

fn escape(character: &str) -> String {
    let short = match character {
        "\0" => '0',
        "\u{7}" => 'a',
        "\u{8}" => 'b',
        "\t" => 't',
        "\n" => 'n',
        "\u{b}" => 'v',
        "\u{c}" => 'f',
        "\r" => 'r',
        "\u{1b}" => 'e',
        "\"" => '"',
        "\\" => '\\',
        "\u{85}" => 'N',
        "\u{a0}" => '_',
        "\u{2028}" => 'L',
        "\u{2029}" => 'P',
        printable => return printable.to_owned(),
    };
    format!("\\{short}")
}

fn string(units: &[u16]) -> String {
    String::from_utf16_lossy(units)
}
