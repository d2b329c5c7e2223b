//! Answers many questions at once: reads lines `expression<TAB>zone<TAB>epoch-milliseconds` and prints for each the
//! next fire in epoch seconds, `-` for never, or `E: message`. A tab within an expression is written `\t`.

use elasticjob_cron::{Cron, Schedule, Zone};
use std::io::{self, BufRead, Write};

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        match answer(String::from_utf8_lossy(&line).trim_end_matches('\r')) {
            Ok(Some(fire)) => writeln!(out, "{}", fire.as_second())?,
            Ok(None) => writeln!(out, "-")?,
            Err(message) => writeln!(out, "E: {message}")?,
        }
    }
    out.flush()
}

fn answer(line: &str) -> Result<Option<jiff::Timestamp>, String> {
    // Zone and instant are the last two columns, so that a tab within the expression does no harm.
    let (rest, instant) =
        line.rsplit_once('\t').ok_or("expected expression<TAB>zone<TAB>epoch-milliseconds")?;
    let (expression, zone) =
        rest.rsplit_once('\t').ok_or("expected expression<TAB>zone<TAB>epoch-milliseconds")?;
    let cron = Cron::parse(&expression.replace("\\t", "\t")).map_err(|error| error.to_string())?;
    let zone = Zone::parse(zone).map_err(|error| error.to_string())?;
    let instant = instant.trim().parse().ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let instant = instant.ok_or("the third column is not an instant in epoch milliseconds")?;
    Ok(Schedule::new(cron, zone).next_after(instant))
}
