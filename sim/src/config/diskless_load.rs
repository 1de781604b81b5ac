//! The values of `repl-diskless-load`.

/// Whether a replica loads its master's snapshot as it comes (`repl-diskless-load`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DisklessLoad {
    /// It waits for all of it.
    #[default]
    Disabled,
    /// It does if it has no data.
    OnEmptyDb,
    /// It keeps its own data until the snapshot is there.
    SwapDb,
}

impl DisklessLoad {
    const ALL: [DisklessLoad; 3] = [DisklessLoad::Disabled, DisklessLoad::OnEmptyDb, DisklessLoad::SwapDb];

    /// The option's value.
    pub fn name(self) -> &'static str {
        match self {
            DisklessLoad::Disabled => "disabled",
            DisklessLoad::OnEmptyDb => "on-empty-db",
            DisklessLoad::SwapDb => "swapdb",
        }
    }

    /// The meaning of the option's value; the default for one that is none.
    pub fn named(name: &str) -> DisklessLoad {
        DisklessLoad::ALL.into_iter().find(|load| load.name() == name).unwrap_or_default()
    }
}
