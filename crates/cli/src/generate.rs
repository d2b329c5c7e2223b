//! What is made from the definition of the arguments: completion scripts and manual pages.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Arguments;
use crate::failure::Failure;
use crate::screen::print;

pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "elasticjob", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man(directory: Option<&Path>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot write the manual: {error}"));
    if let Some(directory) = directory {
        std::fs::create_dir_all(directory).map_err(failed)?;
        return clap_mangen::generate_to(Arguments::command(), directory).map_err(failed);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut page).map_err(failed)?;
    page.flush().map_err(failed)?;
    print(&String::from_utf8_lossy(&page))
}
