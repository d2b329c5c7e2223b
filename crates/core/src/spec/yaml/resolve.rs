//! YAML 1.1's implicit types: what a plain scalar means to SnakeYAML.
//!
//! The writer quotes whatever would not be read as text; the reader needs the same answer for `props`, where Java types the values.

/// The type that a plain scalar has by its spelling alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Implicit {
    Text,
    Null,
    Bool,
    Int,
    Float,
    Timestamp,
    Merge,
    /// A lone `!`, `&` or `*`.
    Indicator,
}

/// Java looks no further than these lengths before it calls a scalar text.
const NUMBER_UNITS_MAX: usize = 1024;
const TIMESTAMP_UNITS_MAX: usize = 50;

/// What Java takes a plain scalar for.
pub(super) fn resolve(text: &str) -> Implicit {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Implicit::Null,
        "<<" => Implicit::Merge,
        "!" | "&" | "*" => Implicit::Indicator,
        _ if boolean(text).is_some_and(|_| has_one_case(text)) => Implicit::Bool,
        _ if text.len() > NUMBER_UNITS_MAX => Implicit::Text,
        _ if is_int(text) => Implicit::Int,
        _ if is_float(text) => Implicit::Float,
        _ if text.len() <= TIMESTAMP_UNITS_MAX && is_timestamp(text) => Implicit::Timestamp,
        _ => Implicit::Text,
    }
}

/// A word that Java reads as a boolean where it wants one, in any mixture of cases.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" => Some(true),
        "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// `yes`, `Yes` and `YES` are booleans by spelling; `yEs` is text.
fn has_one_case(word: &str) -> bool {
    let rest = word.get(1..).unwrap_or_default();
    let lower = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase());
    let upper = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
    lower(rest) || upper(word)
}

/// An integer as Java reads it: underscores, binary, octal, hexadecimal and base sixty.
pub(super) fn integer(text: &str) -> Option<i128> {
    let plain = text.replace('_', "");
    let (sign, digits) = match plain.as_bytes().first()? {
        b'-' => (-1, &plain[1..]),
        b'+' => (1, &plain[1..]),
        _ => (1, plain.as_str()),
    };
    let magnitude = if digits == "0" {
        0
    } else if let Some(binary) = digits.strip_prefix("0b") {
        unsigned(binary, 2)?
    } else if let Some(hexadecimal) = digits.strip_prefix("0x") {
        unsigned(hexadecimal, 16)?
    } else if let Some(octal) = digits.strip_prefix('0') {
        unsigned(octal, 8)?
    } else if digits.contains(':') {
        digits
            .split(':')
            .try_fold(0_i128, |sum, part| sum.checked_mul(60)?.checked_add(unsigned(part, 10)?))?
    } else {
        unsigned(digits, 10)?
    };
    Some(sign * magnitude)
}

fn unsigned(digits: &str, radix: u32) -> Option<i128> {
    let bare = digits.chars().all(|c| c.is_digit(radix));
    if bare { i128::from_str_radix(digits, radix).ok() } else { None }
}

/// A float as Java reads it.
pub(super) fn float(text: &str) -> Option<f64> {
    let plain = text.replace('_', "");
    let (sign, digits) = match plain.as_bytes().first()? {
        b'-' => (-1.0, &plain[1..]),
        b'+' => (1.0, &plain[1..]),
        _ => (1.0, plain.as_str()),
    };
    let magnitude = match digits.to_ascii_lowercase().as_str() {
        ".inf" => f64::INFINITY,
        ".nan" => f64::NAN,
        _ if digits.contains(':') => {
            digits.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))?
        }
        _ => digits.parse().ok()?,
    };
    Some(sign * magnitude)
}

fn is_int(text: &str) -> bool {
    let digits = unsign(text);
    let in_base = |rest: &str, radix: u32| {
        let rest = rest.trim_start_matches('_');
        !rest.is_empty() && all(rest, |c| c == '_' || c.is_digit(radix))
    };
    if digits == "0" {
        return true;
    }
    if let Some(rest) = digits.strip_prefix("0b") {
        return in_base(rest, 2);
    }
    if let Some(rest) = digits.strip_prefix("0x") {
        return in_base(rest, 16);
    }
    if let Some(rest) = digits.strip_prefix('0') {
        return in_base(rest, 8);
    }
    let mut parts = digits.split(':');
    parts.next().is_some_and(is_digits) && parts.all(is_sixty)
}

fn is_float(text: &str) -> bool {
    let digits = unsign(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    if let Some((whole, fraction)) = digits.split_once('.').filter(|(whole, _)| whole.contains(':')) {
        let mut parts = whole.split(':');
        return parts.next().is_some_and(is_digits)
            && parts.all(is_sixty)
            && all(fraction, is_digit_or_underscore);
    }
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let good_exponent = exponent.is_none_or(|exponent| {
        let exponent = unsign(exponent);
        !exponent.is_empty() && all(exponent, |c| c.is_ascii_digit())
    });
    let good_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && all(fraction, is_digit_or_underscore),
        Some((whole, fraction)) => is_digits(whole) && all(fraction, is_digit_or_underscore),
        None => exponent.is_some() && is_digits(mantissa),
    };
    good_exponent && good_mantissa
}

fn is_timestamp(text: &str) -> bool {
    let mut rest = Scan(text);
    if rest.digits(4, 4).is_none() || !rest.skip('-') {
        return false;
    }
    let (Some(month), true, Some(day)) = (rest.digits(1, 2), rest.skip('-'), rest.digits(1, 2)) else {
        return false;
    };
    if rest.0.is_empty() {
        return month == 2 && day == 2;
    }
    let separated = rest.skip('T') || rest.skip('t') || rest.blanks() > 0;
    let clock = separated
        && rest.digits(1, 2).is_some()
        && rest.skip(':')
        && rest.digits(2, 2).is_some()
        && rest.skip(':')
        && rest.digits(2, 2).is_some();
    if !clock {
        return false;
    }
    if rest.skip('.') {
        rest.digits(0, usize::MAX);
    }
    if rest.0.is_empty() {
        return true;
    }
    rest.blanks();
    let zone = rest.skip('Z')
        || ((rest.skip('-') || rest.skip('+'))
            && rest.digits(1, 2).is_some()
            && (!rest.skip(':') || rest.digits(2, 2).is_some()));
    zone && rest.0.is_empty()
}

/// What is left to match of a text.
struct Scan<'a>(&'a str);

impl Scan<'_> {
    fn skip(&mut self, expected: char) -> bool {
        self.0.strip_prefix(expected).map(|rest| self.0 = rest).is_some()
    }

    /// Takes as many digits as there are up to `most`, and says how many, or nothing if there are fewer than `least`.
    fn digits(&mut self, least: usize, most: usize) -> Option<usize> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        self.0 = &self.0[count..];
        (count >= least).then_some(count)
    }

    fn blanks(&mut self) -> usize {
        let rest = self.0.trim_start_matches([' ', '\t']);
        let count = self.0.len() - rest.len();
        self.0 = rest;
        count
    }
}

fn unsign(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn is_digits(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && all(text, is_digit_or_underscore)
}

fn is_digit_or_underscore(c: char) -> bool {
    c == '_' || c.is_ascii_digit()
}

/// One or two digits below sixty.
fn is_sixty(text: &str) -> bool {
    match text.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [ten, one] => (b'0'..=b'5').contains(ten) && one.is_ascii_digit(),
        _ => false,
    }
}

fn all(text: &str, allowed: impl Fn(char) -> bool) -> bool {
    text.chars().all(allowed)
}

/// Text that Java writes as text; anything else becomes `!!binary`.
pub(super) fn is_printable(text: &str) -> bool {
    all(text, |c| matches!(c, ' '..='~' | '\n' | '\r' | '\t') || is_printable_beyond_ascii(c))
}

pub(super) fn is_printable_beyond_ascii(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let sextet = (word >> (18 - 6 * position)) & 0x3F;
            let digit = if position <= chunk.len() { ALPHABET[sextet as usize] } else { b'=' };
            out.push(char::from(digit));
        }
    }
    out
}

/// The bytes behind base 64 text; white space in it is skipped.
pub(super) fn unbase64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::new();
    for chunk in digits.chunks(4) {
        let padding = chunk.iter().rev().take_while(|digit| **digit == b'=').count();
        if padding > 2 {
            return None;
        }
        let mut word = 0_u32;
        for digit in &chunk[..4 - padding] {
            let sextet = ALPHABET.iter().position(|candidate| candidate == digit)?;
            word = (word << 6) | u32::try_from(sextet).ok()?;
        }
        word <<= 6 * padding;
        out.extend(&word.to_be_bytes()[1..4 - padding]);
    }
    Some(out)
}
