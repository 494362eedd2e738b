//! Running the process: sockets, logs, the lock on the data folder, signals, drain, and what the process knows of itself.

mod data_dir;
mod drain;
mod error_log;
mod listening;
mod log_file;
mod pid_file;
mod process;
mod signals;
mod sockets;

pub use data_dir::DataDir;
pub use drain::{Drain, InFlight};
pub use error_log::install as install_error_log;
pub use listening::Listening;
pub use log_file::LogFile;
pub use pid_file::{PidFile, signal_running};
pub use process::{LoopLag, max_fds, open_fds, raise_fd_limit, start_through_signals};
pub use signals::{HangUp, Ready, Reloading, Signals};
pub use sockets::Socket;
