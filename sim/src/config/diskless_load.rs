//! The values of `repl-diskless-load`.

/// The way a replica loads its master's snapshot (`repl-diskless-load`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DisklessLoad {
    /// It waits for the whole snapshot.
    #[default]
    Disabled,
    /// It loads the snapshot as it arrives if it has no data.
    OnEmptyDb,
    /// It loads the snapshot as it arrives and keeps its own data until the end.
    SwapDb,
}

impl DisklessLoad {
    const ALL: [DisklessLoad; 3] = [DisklessLoad::Disabled, DisklessLoad::OnEmptyDb, DisklessLoad::SwapDb];

    /// Returns the option's value.
    pub fn name(self) -> &'static str {
        match self {
            DisklessLoad::Disabled => "disabled",
            DisklessLoad::OnEmptyDb => "on-empty-db",
            DisklessLoad::SwapDb => "swapdb",
        }
    }

    /// Returns the meaning of the option's value; the default for any other text.
    pub fn named(name: &str) -> DisklessLoad {
        DisklessLoad::ALL.into_iter().find(|load| load.name() == name).unwrap_or_default()
    }
}
