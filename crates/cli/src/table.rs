//! Aligned columns.

use crate::screen::{Screen, Tone};

pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// A cell, and the colour of it.
pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Cell {
    pub(crate) fn toned(text: &(impl ToString + ?Sized), tone: Tone) -> Cell {
        Cell { tone: Some(tone), ..Cell::from(text.to_string()) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        // A line break in a description must not break the table, nor any other code a terminal.
        let text = text.into().replace(char::is_control, " ");
        Cell { text: if text.trim().is_empty() { "-".to_owned() } else { text }, tone: None }
    }
}

impl Table {
    pub(crate) fn new(head: impl Into<Vec<&'static str>>) -> Table {
        Table { head: head.into(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn show(&self, screen: &Screen) -> String {
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(&cell.text));
                cells.chain([width(self.head[column])]).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        let head: Vec<Cell> = self.head.iter().map(|it| Cell::toned(*it, Tone::Quiet)).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::new();
            let mut gap = 0;
            for (cell, column) in row.iter().zip(&widths) {
                line.push_str(&" ".repeat(gap));
                line.push_str(
                    &cell.tone.map_or_else(|| cell.text.clone(), |tone| screen.paint(&cell.text, tone)),
                );
                gap = 2 + column - width(&cell.text);
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// How many places a text takes in a terminal: those of the East are twice as wide.
fn width(text: &str) -> usize {
    let wide = |c: char| matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}');
    text.chars().map(|c| if wide(c) { 2 } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_also_where_letters_are_wide() {
        let mut table = Table::new(["JOB", "TEXT", "N"]);
        table.row(["a".into(), "北京".into(), "1".into()]);
        table.row(["longer".into(), "two\nlines".into(), "".into()]);
        let expected = "JOB     TEXT       N\na       北京       1\nlonger  two lines  -\n";
        assert_eq!(table.show(&Screen::new(true)), expected);
    }
}
