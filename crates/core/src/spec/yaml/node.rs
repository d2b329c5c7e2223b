//! A document as nodes, and its top-level entries together with the text they came from.
//!
//! The parser below speaks YAML 1.2 and Java 1.1, so line separators that only 1.1 knows are translated before and restored after it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_saphyr::granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};

use super::emit::is_break;
use super::resolve::{self, Implicit};
use crate::spec::SpecError;

/// A document with more nodes than this, aliases followed, is an attack or a mistake.
const NODES_MAX: usize = 100_000;

/// A value of a document, aliases followed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Scalar { text: String, implicit: Implicit, binary: bool },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Node::Scalar { implicit: Implicit::Null, .. })
    }

    pub(super) fn is_merge(&self) -> bool {
        matches!(self, Node::Scalar { implicit: Implicit::Merge, .. })
    }

    /// What Java would type the scalar as where it does not ask for a type.
    pub(super) fn implicit(&self) -> Option<Implicit> {
        match self {
            Node::Scalar { implicit, .. } => Some(*implicit),
            Node::List(_) | Node::Map(_) => None,
        }
    }

    pub(super) fn is_empty_list(&self) -> bool {
        matches!(self, Node::List(items) if items.is_empty())
    }

    fn size(&self) -> usize {
        match self {
            Node::Scalar { .. } => 1,
            Node::List(items) => 1 + items.iter().map(Node::size).sum::<usize>(),
            Node::Map(entries) => {
                1 + entries.iter().map(|(key, value)| key.size() + value.size()).sum::<usize>()
            }
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Scalar { text, .. } => out.write_str(text),
            Node::List(_) => out.write_str("[…]"),
            Node::Map(_) => out.write_str("{…}"),
        }
    }
}

/// A top-level key with its value and its text.
pub(super) struct Entry<'a> {
    pub(super) key: String,
    pub(super) value: Node,
    shape: Shape<'a>,
    position: Position,
    /// Refers to an anchor outside of its own text, so that the text cannot stand alone.
    leans: bool,
}

/// The text of an entry.
enum Shape<'a> {
    /// Whole lines of a block mapping that is indented by so many columns; the value starts at the given offset.
    Block { lines: &'a str, indent: usize, colon: usize },
    /// Key and value of a flow mapping.
    Flow { key: &'a str, value: &'a str },
}

#[derive(Clone, Copy)]
struct Position {
    line: usize,
    column: usize,
}

impl Entry<'_> {
    /// The lines of the entry, key included, as they stand in a block mapping that is not indented.
    pub(super) fn lines(&self) -> Result<String, SpecError> {
        let lines = match &self.shape {
            Shape::Block { lines, indent, .. } => outdent(lines, *indent),
            Shape::Flow { key, value: "" } => format!("{key}:\n"),
            Shape::Flow { key, value } => format!("{key}: {}\n", value.replace('\n', "\n  ")),
        };
        self.must_stand_alone(&lines)?;
        Ok(lines)
    }

    /// What stands behind the key, or nothing if that is null or an empty list.
    pub(super) fn below(&self) -> Result<Option<String>, SpecError> {
        if self.value.is_null() || self.value.is_empty_list() {
            return Ok(None);
        }
        let below = match &self.shape {
            Shape::Block { lines, indent, colon } => {
                let behind = lines.get(*colon..).unwrap_or_default();
                let (rest, below) = behind.split_once('\n').unwrap_or((behind, ""));
                let below = outdent(below, *indent);
                if rest.trim().is_empty() { below } else { format!("{}\n{below}", rest.trim_start()) }
            }
            Shape::Flow { value, .. } => format!("{}\n", value.replace('\n', "\n  ")),
        };
        self.must_stand_alone(&under(&self.key, &below))?;
        Ok(Some(below))
    }

    /// The text will be put between other lines, so it has to be exactly this entry without its surroundings.
    fn must_stand_alone(&self, lines: &str) -> Result<(), SpecError> {
        if self.leans {
            let reason = format!("`{}` uses an alias of another key's anchor: write the value out", self.key);
            return Err(self.position.error(reason));
        }
        let among_others = format!("before: 1\n{lines}after: 1\n");
        match entries(&among_others).as_deref() {
            Ok([_, entry, after]) if entry.spans(lines) && self.is_same(entry) && after.key == "after" => {
                Ok(())
            }
            _ => Err(self
                .position
                .error(format!("`{}` cannot be kept as it is: write it as `key: value` lines", self.key))),
        }
    }

    /// A flow entry was taken out of its brackets, so its value is compared too.
    fn is_same(&self, other: &Entry<'_>) -> bool {
        let same_value = match self.shape {
            Shape::Block { .. } => true,
            Shape::Flow { .. } => self.value == other.value,
        };
        self.key == other.key && same_value
    }

    fn spans(&self, text: &str) -> bool {
        matches!(self.shape, Shape::Block { lines, .. } if lines == text)
    }
}

/// A key with YAML text below or behind it.
pub(super) fn under(key: &str, text: &str) -> String {
    let gap = if text.starts_with(['-', ' ']) { '\n' } else { ' ' };
    format!("{key}:{gap}{text}")
}

fn outdent(lines: &str, columns: usize) -> String {
    let mut out = String::with_capacity(lines.len() + 1);
    for line in lines.split_inclusive('\n') {
        let blanks = line.bytes().take(columns).take_while(|byte| *byte == b' ').count();
        out.push_str(&line[blanks..]);
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Reads the one mapping that a document must be.
pub(super) fn entries(text: &str) -> Result<Vec<Entry<'_>>, SpecError> {
    let source = Source::new(text);
    let mut reader = Reader::new(&source)?;
    let style = reader.open()?;
    let mut raw = Vec::new();
    while let Some(entry) = reader.entry()? {
        raw.push(entry);
    }
    reader.close()?;
    let starts: Vec<usize> =
        raw.iter().map(|entry| source.entry_start(entry.key_start, reader.indent)).collect();
    let entries = raw.into_iter().enumerate().map(|(at, entry)| {
        let shape = match style {
            StructureStyle::Block => {
                source.block(starts[at], starts.get(at + 1).copied(), &entry, reader.indent)
            }
            StructureStyle::Flow => source.flow(&entry),
        };
        Entry { key: entry.key, value: entry.value, shape, position: entry.position, leans: entry.leans }
    });
    Ok(entries.collect())
}

/// A top-level entry before its text has been cut out. Offsets count characters.
struct RawEntry {
    key: String,
    key_start: usize,
    key_end: usize,
    value: Node,
    value_start: usize,
    value_end: usize,
    position: Position,
    leans: bool,
}

/// The text as it came, and as the parser gets it: character by character at the same offsets.
struct Source<'a> {
    text: &'a str,
    chars: Vec<(usize, char)>,
    parsed: Cow<'a, str>,
    /// Stands for a byte order mark inside the document.
    mark: Option<char>,
    has_odd_breaks: bool,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl<'a> Source<'a> {
    fn new(text: &'a str) -> Self {
        let is_odd = !text.is_ascii();
        let has_odd_breaks = is_odd && text.contains(['\u{85}', '\u{2028}', '\u{2029}']);
        let has_inner_mark = is_odd && text.chars().skip(1).any(|c| c == BYTE_ORDER_MARK);
        let mark = if has_inner_mark {
            ('\u{e000}'..='\u{f8ff}').find(|candidate| !text.contains(*candidate))
        } else {
            None
        };
        let translate = |(at, c): (usize, char)| match c {
            BYTE_ORDER_MARK if at > 0 => mark.unwrap_or(c),
            c if is_break(c) => '\n',
            c => c,
        };
        let parsed = if has_odd_breaks || mark.is_some() {
            Cow::Owned(text.chars().enumerate().map(translate).collect())
        } else {
            Cow::Borrowed(text)
        };
        Source { text, chars: text.char_indices().collect(), parsed, mark, has_odd_breaks }
    }

    /// Undoes the translation in a scalar. Only a literal block can have kept an odd separator: elsewhere Java escapes it.
    fn restore(&self, text: &str, style: ScalarStyle, previous_end: usize) -> String {
        let text = self
            .mark
            .map_or(Cow::Borrowed(text), |mark| Cow::Owned(text.replace(mark, &BYTE_ORDER_MARK.to_string())));
        if !self.has_odd_breaks || style != ScalarStyle::Literal {
            return text.into_owned();
        }
        let behind = self.chars.iter().skip(previous_end).map(|(_, c)| *c);
        let mut breaks = behind.skip_while(|c| *c != '|').filter(|c| is_break(*c)).skip(1);
        let restore = |c| match c {
            '\n' => breaks.next().filter(|c| *c != '\u{85}').unwrap_or('\n'),
            c => c,
        };
        text.chars().map(restore).collect()
    }

    fn byte(&self, char: usize) -> usize {
        self.chars.get(char).map_or(self.text.len(), |(byte, _)| *byte)
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(self.byte(start)..self.byte(end)).unwrap_or_default()
    }

    /// The byte at which the line begins that opens the entry: the key's, or that of its `?`.
    fn entry_start(&self, key_start: usize, indent: usize) -> usize {
        let mut start = self.byte(key_start);
        loop {
            let line_start = self.text[..start]
                .rfind(is_break)
                .map_or(0, |at| at + self.text[at..].chars().next().map_or(1, char::len_utf8));
            let line = self.text[line_start..].trim_start_matches(BYTE_ORDER_MARK);
            let opens = line.bytes().take_while(|byte| *byte == b' ').count() == indent
                && !line.trim_start().starts_with('#');
            if opens || line_start == 0 {
                return line_start;
            }
            start = line_start - 1;
            while !self.text.is_char_boundary(start) {
                start -= 1;
            }
        }
    }

    fn block(&self, start: usize, end: Option<usize>, entry: &RawEntry, indent: usize) -> Shape<'a> {
        let end = end.unwrap_or_else(|| self.document_end(start));
        let lines = self.text.get(start..end).unwrap_or_default().trim_start_matches(BYTE_ORDER_MARK);
        let key_end = self.byte(entry.key_end);
        let colon = self
            .text
            .get(key_end..end)
            .and_then(|rest| rest.find(':'))
            .map_or(key_end, |at| key_end + at + 1);
        Shape::Block { lines, indent, colon: colon.saturating_sub(end - lines.len()) }
    }

    fn flow(&self, entry: &RawEntry) -> Shape<'a> {
        Shape::Flow {
            key: self.slice(entry.key_start, entry.key_end),
            value: self.slice(entry.value_start, entry.value_end),
        }
    }

    /// The end of the text, or the line with which the document ends earlier.
    fn document_end(&self, start: usize) -> usize {
        let mut at = start;
        for line in self.text[start..].split_inclusive('\n') {
            let marker = line.starts_with("...") || line.starts_with("---");
            if marker && line.chars().nth(3).is_none_or(char::is_whitespace) {
                return at;
            }
            at += line.len();
        }
        at
    }
}

/// Turns the parser's events into nodes.
struct Reader<'s> {
    source: &'s Source<'s>,
    events: std::vec::IntoIter<(Event<'s>, Span)>,
    anchors: BTreeMap<usize, Node>,
    /// Anchors of the top-level entry that is being read, and whether it has used another's.
    own: BTreeSet<usize>,
    leans: bool,
    nodes: usize,
    previous_end: usize,
    indent: usize,
}

impl<'s> Reader<'s> {
    fn new(source: &'s Source<'s>) -> Result<Self, SpecError> {
        let events = Parser::new_from_str(&source.parsed)
            .filter(|event| !matches!(event, Ok((Event::Comment(..), _))));
        let events: Vec<_> = events
            .collect::<Result<_, ScanError>>()
            .map_err(|error| Position::of(error.marker()).error(error.info()))?;
        Ok(Reader {
            source,
            events: events.into_iter(),
            anchors: BTreeMap::new(),
            own: BTreeSet::new(),
            leans: false,
            nodes: 0,
            previous_end: 0,
            indent: 0,
        })
    }

    fn open(&mut self) -> Result<StructureStyle, SpecError> {
        for (event, span) in self.events.by_ref() {
            match event {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::MappingStart(style, ..) => {
                    self.indent = span.start.col();
                    return Ok(style);
                }
                Event::StreamEnd => break,
                _ => {
                    return Err(
                        Position::of(&span.start).error("not a mapping: write `key: value` lines".to_owned())
                    );
                }
            }
        }
        Err(Position { line: 1, column: 1 }
            .error("the document is empty: write `key: value` lines".to_owned()))
    }

    fn close(&mut self) -> Result<(), SpecError> {
        match self.events.by_ref().find(|(event, _)| matches!(event, Event::DocumentStart(..))) {
            Some((_, span)) => {
                Err(Position::of(&span.start).error("a second document begins here: keep one".to_owned()))
            }
            None => Ok(()),
        }
    }

    fn entry(&mut self) -> Result<Option<RawEntry>, SpecError> {
        self.own.clear();
        self.leans = false;
        let Some((event, key_span)) = self.events.next() else { return Ok(None) };
        if matches!(event, Event::MappingEnd) {
            return Ok(None);
        }
        let position = Position::of(&key_span.start);
        let key = match self.node(event, &key_span)? {
            key if key.is_null() => {
                return Err(position.error("a key is missing here: write `key: value`".to_owned()));
            }
            key if key.is_merge() => {
                return Err(position.error("merge keys are not supported: write the settings out".to_owned()));
            }
            Node::Scalar { text, .. } => text,
            Node::List(_) | Node::Map(_) => return Err(position.error("a key must be text".to_owned())),
        };
        let key_end = self.previous_end;
        let Some((event, span)) = self.events.next() else { return Ok(None) };
        let value_start = span.tag_start.map_or(span.start.index(), |tag| tag.index());
        let value = self.node(event, &span)?;
        let (key_start, value_end) = (key_span.start.index(), self.previous_end);
        Ok(Some(RawEntry {
            key,
            key_start,
            key_end,
            value,
            value_start,
            value_end,
            position,
            leans: self.leans,
        }))
    }

    fn node(&mut self, event: Event<'s>, span: &Span) -> Result<Node, SpecError> {
        let (node, anchor) = match event {
            Event::Alias(id) => return self.alias(id, span),
            Event::Scalar(text, style, anchor, tag) => {
                let text = self.source.restore(&text, style, self.previous_end);
                self.previous_end = span.end.index();
                (scalar(text, style, tag.as_deref()), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (Node::List(self.list(span)?), anchor),
            Event::MappingStart(_, anchor, _) => (Node::Map(self.map(span)?), anchor),
            _ => return Err(Position::of(&span.start).error("a value is missing here".to_owned())),
        };
        self.count(1, span)?;
        if anchor > 0 {
            self.own.insert(anchor);
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, span: &Span) -> Result<Vec<Node>, SpecError> {
        self.previous_end = span.end.index();
        let mut items = Vec::new();
        while let Some((event, span)) = self.events.next() {
            if matches!(event, Event::SequenceEnd) {
                self.previous_end = span.end.index();
                break;
            }
            items.push(self.node(event, &span)?);
        }
        Ok(items)
    }

    fn map(&mut self, span: &Span) -> Result<Vec<(Node, Node)>, SpecError> {
        self.previous_end = span.end.index();
        let mut entries = Vec::new();
        while let Some((event, span)) = self.events.next() {
            if matches!(event, Event::MappingEnd) {
                self.previous_end = span.end.index();
                break;
            }
            let key = self.node(event, &span)?;
            if let Some((event, span)) = self.events.next() {
                entries.push((key, self.node(event, &span)?));
            }
        }
        Ok(entries)
    }

    fn alias(&mut self, id: usize, span: &Span) -> Result<Node, SpecError> {
        self.previous_end = span.end.index();
        self.leans |= !self.own.contains(&id);
        let Some(node) = self.anchors.get(&id).cloned() else {
            return Err(Position::of(&span.start)
                .error("the alias refers to what contains it: write the value out".to_owned()));
        };
        self.count(node.size(), span)?;
        Ok(node)
    }

    fn count(&mut self, nodes: usize, span: &Span) -> Result<(), SpecError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > NODES_MAX {
            return Err(Position::of(&span.start)
                .error(format!("more than {NODES_MAX} values: shorten the document")));
        }
        Ok(())
    }
}

fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>) -> Node {
    // To Java a lone `!` says nothing.
    let tag = tag.filter(|tag| tag.original() != "!");
    let implicit = match tag.map(|tag| tag.core_suffix().unwrap_or("")) {
        None if style == ScalarStyle::Plain => resolve::resolve(&text),
        Some("null") => Implicit::Null,
        Some("bool") => Implicit::Bool,
        Some("int") => Implicit::Int,
        Some("float") => Implicit::Float,
        Some("timestamp") => Implicit::Timestamp,
        None | Some(_) => Implicit::Text,
    };
    let binary =
        tag.is_some_and(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() == Some("binary"));
    Node::Scalar { text, implicit, binary }
}

impl Position {
    fn of(marker: &Marker) -> Position {
        Position { line: marker.line(), column: marker.col() + 1 }
    }

    fn error(self, reason: String) -> SpecError {
        SpecError::Yaml { line: self.line, column: self.column, reason }
    }
}
