//! Tables of the file format in which exactly one kind is given: steps, workloads, faults.

/// Declares such a table: the entry as it is written, with the keys that all kinds share and a key
/// for each kind, and the enum of the kinds. To add a kind, add a line here and a type that
/// implements the trait after the enum's colon.
///
/// The entry keeps each kind in its own `Option`. So serde and the JSON Schema report a misspelt
/// key among the keys of one table, and an entry with two kinds is reported with its place.
macro_rules! one_of {
    (
        $(#[$entry_meta:meta])*
        pub struct $Entry:ident { $($(#[$common_meta:meta])* pub $common:ident: $Common:ty,)* }

        $(#[$kind_meta:meta])*
        pub enum $Kind:ident: $Trait:ident { $($(#[doc = $doc:literal])* $name:ident: $Type:ident,)+ }
    ) => {
        $(#[$entry_meta])*
        #[derive(Debug, Clone, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $Entry {
            $($(#[$common_meta])* pub $common: $Common,)*
            $($(#[doc = $doc])* pub $name: Option<$Type>,)+
        }

        impl $Entry {
            /// Returns the kinds that are given; a valid entry has exactly one.
            pub fn given(&self) -> Vec<$Kind> {
                [$(self.$name.clone().map($Kind::$Type)),+].into_iter().flatten().collect()
            }
        }

        $(#[$kind_meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $Kind { $($(#[doc = $doc])* $Type($Type),)+ }

        impl $Kind {
            /// The key of each kind, and a line about it.
            pub const LIST: &[(&str, &str)] = &[$((stringify!($name), concat!($($doc),*).trim_ascii())),+];

            /// Returns the key of this kind.
            pub fn name(&self) -> &'static str {
                match self { $($Kind::$Type(_) => stringify!($name),)+ }
            }
        }

        impl From<$Kind> for $Entry {
            fn from(kind: $Kind) -> $Entry {
                match kind { $($Kind::$Type(kind) => kind.into(),)+ }
            }
        }

        impl std::ops::Deref for $Kind {
            type Target = dyn $Trait;
            fn deref(&self) -> &Self::Target {
                match self { $($Kind::$Type(kind) => kind,)+ }
            }
        }

        impl std::ops::DerefMut for $Kind {
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self { $($Kind::$Type(kind) => kind,)+ }
            }
        }

        $(
            impl From<$Type> for $Entry {
                #[allow(clippy::needless_update, reason = "a table of one kind has no other key")]
                fn from(kind: $Type) -> $Entry {
                    $Entry { $name: Some(kind), ..$Entry::default() }
                }
            }
        )+
    };
}

pub(crate) use one_of;
