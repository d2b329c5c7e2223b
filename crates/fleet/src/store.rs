//! The world outside that jobs act on: a store that keeps the newest token of each item and refuses older
//! ones, as `docs/guarantees.md` asks users to build theirs. It lives in the process that runs the fleet,
//! where nothing stops it, and answers over a Unix socket.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// No write takes longer than this, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(20);
/// A request is a line of at most this many bytes.
const LONGEST: u64 = 4096;

type Newest = Arc<Mutex<BTreeMap<(String, u32), u64>>>;

/// A store that runs. It ends when it is dropped.
#[derive(Debug)]
pub struct Store {
    _task: JoinSet<()>,
}

impl Store {
    /// Listens at this path.
    pub fn start(path: &Path) -> io::Result<Store> {
        let listener = UnixListener::bind(path)?;
        let newest = Newest::default();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let newest = newest.clone();
                // A client that is killed in the middle of its request has no effect.
                clients.spawn(async move { tokio::time::timeout(LIMIT, serve(stream, &newest)).await });
                while clients.try_join_next().is_some() {}
            }
        });
        Ok(Store { _task: task })
    }
}

async fn serve(stream: UnixStream, newest: &Newest) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    (&mut stream).take(LONGEST).read_line(&mut request).await?;
    let mut words = request.split_whitespace();
    let (Some(job), Some(item), Some(token)) = (words.next(), words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let number = |_| io::Error::from(io::ErrorKind::InvalidData);
    let (item, token): (u32, u64) = (item.parse().map_err(number)?, token.parse().map_err(number)?);
    let accepted = {
        let mut newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
        let known = newest.entry((job.to_owned(), item)).or_default();
        let accepted = token >= *known;
        *known = token.max(*known);
        accepted
    };
    stream.write_all(if accepted { b"1" } else { b"0" }).await
}

/// Writes for this item with this token; says whether the store took it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// use elasticjob_fleet::store::{Store, write};
///
/// let place = std::env::temp_dir().join(format!("store-{}", std::process::id()));
/// let store = Store::start(&place)?;
/// assert!(write(&place, "orders", 0, 7).await?);
/// assert!(write(&place, "orders", 0, 9).await?);
/// assert!(!write(&place, "orders", 0, 7).await?, "somebody newer has written");
/// assert!(write(&place, "orders", 1, 7).await?, "to another item");
/// # std::fs::remove_file(place)
/// # }
/// ```
pub async fn write(place: &Path, job: &str, item: u32, token: u64) -> io::Result<bool> {
    let ask = async {
        let mut stream = UnixStream::connect(place).await?;
        stream.write_all(format!("{job} {item} {token}\n").as_bytes()).await?;
        Ok(stream.read_u8().await? == b'1')
    };
    tokio::time::timeout(LIMIT, ask).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
