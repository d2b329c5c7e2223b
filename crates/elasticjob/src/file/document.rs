//! The file as a tree of values that know where they stand.
//!
//! YAML's own conveniences end here: aliases are followed, merge keys are merged, and no key stands twice.

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{
    Event, Parser, ScalarStyle, ScanError, Span, StrInput, StructureStyle, Tag,
};

use super::error::{Fault, Place, Shown};

/// What aliases may copy altogether; more is an attack or a mistake.
const COPIES_MAX: usize = 100_000;

/// No setting lies deeper than a few levels.
const DEPTH_MAX: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Scalar { text: String, plain: bool },
    List(Vec<Node>),
    Map(Map),
}

#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) entries: Vec<Entry>,
    /// Written between braces, where a comma ends a value.
    pub(super) flow: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) node: Node,
}

impl Node {
    /// Nothing at all, or `~`, or `null`. Only what is written counts, not what a variable holds.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The value as a message shows it.
    pub(super) fn shown(&self) -> String {
        match &self.value {
            Value::Scalar { text, .. } => Shown(text).to_string(),
            Value::List(_) => "[…]".to_owned(),
            Value::Map(_) => "{…}".to_owned(),
        }
    }

    fn size(&self) -> usize {
        match &self.value {
            Value::Scalar { .. } => 1,
            Value::List(items) => 1 + items.iter().map(Node::size).sum::<usize>(),
            Value::Map(map) => 1 + map.entries.iter().map(|entry| 1 + entry.node.size()).sum::<usize>(),
        }
    }
}

/// Reads the one mapping that the file must be.
pub(super) fn read(text: &str) -> Result<Map, Fault> {
    let mut reader = Reader {
        text,
        parser: Parser::new_from_str(text),
        anchors: BTreeMap::new(),
        copies: 0,
        path: Vec::new(),
    };
    let Some(node) = reader.document()? else {
        return Err(Fault::whole(
            "the file is empty: write `jobs:` and below it the jobs, each under its name",
        ));
    };
    match node.value {
        Value::Map(map) => Ok(map),
        Value::List(_) | Value::Scalar { .. } => Err(Fault::new(
            node.place,
            "",
            "the file must be a mapping: write `jobs:` and below it the jobs, each under its name",
        )),
    }
}

struct Reader<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    anchors: BTreeMap<usize, Node>,
    copies: usize,
    path: Vec<String>,
}

impl<'t> Reader<'t> {
    fn document(&mut self) -> Result<Option<Node>, Fault> {
        let mut root = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(Fault::new(
                        place(&span),
                        "",
                        "a second document begins here: keep one, and put the other into a file of its own",
                    ));
                }
                Event::DocumentStart(..) => {}
                event => root = Some(self.node(event, &span, 0)?),
            }
        }
        Ok(root.filter(|node| !node.is_null()))
    }

    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, Fault> {
        loop {
            match self.parser.next_event() {
                None => return Ok(None),
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(next)) => return Ok(Some(next)),
                Some(Err(error)) => return Err(syntax(&error, self.text)),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: &Span, depth: usize) -> Result<Node, Fault> {
        let place = place(span);
        if depth > DEPTH_MAX {
            return Err(self.fault(place, "nests too deeply: no setting lies so deep"));
        }
        let (value, anchor) = match event {
            Event::Alias(id) => return self.alias(id, place),
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !self.is_text(tag.as_deref(), place)?;
                (Value::Scalar { text: text.into_owned(), plain }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.is_text(tag.as_deref(), place)?;
                (Value::List(self.list(depth)?), anchor)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.is_text(tag.as_deref(), place)?;
                let flow = style == StructureStyle::Flow;
                (Value::Map(Map { entries: self.map(depth)?, flow }), anchor)
            }
            _ => return Err(self.fault(place, "has no value here")),
        };
        let node = Node { place, value };
        if anchor > 0 {
            self.copy(&node, place)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Fault> {
        let mut items = Vec::new();
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::SequenceEnd) {
                break;
            }
            items.push(self.node(event, &span, depth + 1)?);
        }
        Ok(items)
    }

    fn map(&mut self, depth: usize) -> Result<Vec<Entry>, Fault> {
        let mut entries = Vec::new();
        let mut lines = BTreeMap::new();
        let mut merged = Vec::new();
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let (key, plain, at) = self.key(event, &span, depth)?;
            self.path.push(key.clone());
            if let Some(line) = lines.insert(key.clone(), at.line) {
                return Err(self.fault(at, format!("stands twice, first in line {line}: keep one of them")));
            }
            let Some((event, span)) = self.next()? else { break };
            let mut node = self.node(event, &span, depth + 1)?;
            if node.is_null() {
                // The parser puts what is not there behind the next line break or bracket.
                node.place = at;
            }
            if key == "<<" && plain {
                merged.extend(self.merge(node)?);
            } else {
                entries.push(Entry { key, place: at, node });
            }
            self.path.pop();
        }
        for entry in merged {
            if lines.insert(entry.key.clone(), entry.place.line).is_none() {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    fn key(&mut self, event: Event<'t>, span: &Span, depth: usize) -> Result<(String, bool, Place), Fault> {
        let node = self.node(event, span, depth + 1)?;
        match node.value {
            Value::Scalar { text, .. } if text.contains("${") => {
                self.path.push(text);
                Err(self.fault(node.place, "is a key: variables expand in values only, so write the key out"))
            }
            Value::Scalar { text, plain } => Ok((text, plain, node.place)),
            Value::List(_) | Value::Map(_) => {
                Err(self.fault(node.place, "has a key that is no text: quote it"))
            }
        }
    }

    /// The entries that `<<` brings in: of a mapping, or of several, where the first that has a key wins.
    fn merge(&self, node: Node) -> Result<Vec<Entry>, Fault> {
        let nodes = match node.value {
            Value::List(nodes) => nodes,
            Value::Map(_) | Value::Scalar { .. } => vec![node],
        };
        let mut entries = Vec::new();
        for node in nodes {
            match node.value {
                Value::Map(map) => entries.extend(map.entries),
                Value::Scalar { .. } | Value::List(_) => {
                    return Err(self.fault(node.place, "merges mappings only: write an alias of one"));
                }
            }
        }
        Ok(entries)
    }

    fn alias(&mut self, id: usize, place: Place) -> Result<Node, Fault> {
        let Some(node) = self.anchors.get(&id).cloned() else {
            return Err(self.fault(place, "has an alias of what contains it: write the value out"));
        };
        self.copy(&node, place)?;
        Ok(node)
    }

    fn copy(&mut self, node: &Node, place: Place) -> Result<(), Fault> {
        self.copies = self.copies.saturating_add(node.size());
        if self.copies > COPIES_MAX {
            return Err(
                self.fault(place, format!("has aliases of more than {COPIES_MAX} values: write them out"))
            );
        }
        Ok(())
    }

    /// Whether a tag makes a text of a scalar. Tags of other programs mean nothing here.
    fn is_text(&self, tag: Option<&Tag>, place: Place) -> Result<bool, Fault> {
        match tag.map(|tag| (tag.core_suffix(), tag)) {
            None => Ok(false),
            Some((Some("str"), _)) => Ok(true),
            Some((Some("bool" | "int" | "float" | "null" | "map" | "seq"), _)) => Ok(false),
            Some((_, tag)) => {
                let reason = format!("has the tag `{}`: remove it", Shown(&tag.original()));
                Err(self.fault(place, reason))
            }
        }
    }

    fn fault(&self, place: Place, reason: impl Into<String>) -> Fault {
        let field = if self.path.is_empty() { "the file".to_owned() } else { self.path.join(".") };
        Fault::new(place, field, reason)
    }
}

fn place(span: &Span) -> Place {
    let (start, end) = (&span.start, &span.end);
    let width = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { usize::MAX };
    Place { line: start.line(), column: start.col() + 1, width }
}

/// What the parser found, with the mistakes named that it cannot know to be so common.
fn syntax(error: &ScanError, text: &str) -> Fault {
    let marker = error.marker();
    let at = Place { line: marker.line().max(1), column: marker.col() + 1, width: 1 };
    let near = at.line.saturating_sub(2)..=at.line;
    for (index, line) in text.split('\n').enumerate().skip(*near.start()).take(3) {
        let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        if let Some(tab) = indent.find('\t') {
            let place = Place { line: index + 1, column: tab + 1, width: 1 };
            return Fault::new(place, "", "a tab indents this line, which YAML does not allow: use spaces");
        }
    }
    let line = text.split('\n').nth(at.line - 1).unwrap_or_default();
    let reason = if line.chars().nth(marker.col()) == Some('*') {
        "a value that starts with `*` is an alias to YAML: put it between quotes".to_owned()
    } else if line.contains("${") {
        format!(
            "this is not YAML: {}; a value with `${{…}}` needs quotes if it stands between braces or brackets",
            error.info()
        )
    } else {
        format!("this is not YAML: {}", error.info())
    };
    Fault::new(at, "", reason)
}
