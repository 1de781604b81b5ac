//! Libraries of functions: FUNCTION LOAD adds them, and FCALL finds their functions.

use std::{collections::BTreeMap, rc::Rc};

use bytes::Bytes;
use mlua::RegistryKey;

use super::{
    Engine, Flags,
    context::{Registered, Tail},
    convert::lossy,
};
use crate::resp::{quotable, split_words};

/// The first line of a library's code, `#!lua name=mylib`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name in the line, of letters, digits and underscores.
    pub name: String,
    /// Length of the line without its newline. The source begins at the newline, so that line
    /// numbers do not change.
    pub(super) len: usize,
}

impl Header {
    /// Parses the first line.
    ///
    /// # Errors
    /// The text of the error reply, without its code.
    pub fn read(code: &[u8]) -> Result<Header, String> {
        const INVALID: &str = "Invalid library metadata";
        if !code.starts_with(b"#!") {
            return Err("Missing library metadata".into());
        }
        let len = code.iter().position(|&b| b == b'\n').ok_or(INVALID)?;
        let words = split_words(&code[..len]).filter(|words| !words.is_empty()).ok_or(INVALID)?;
        let engine = quotable(words[0].get(2..).unwrap_or_default());
        let mut name = None;
        for word in &words[1..] {
            match word.split_at_checked(5) {
                Some((key, value)) if key.eq_ignore_ascii_case(b"name=") => {
                    if name.replace(lossy(value)).is_some() {
                        return Err("Invalid metadata value, name argument was given multiple times".into());
                    }
                }
                _ => return Err(format!("Invalid metadata value given: {}", quotable(word))),
            }
        }
        let name = name.ok_or("Library name was not given")?;
        check_name(&name)?;
        if !engine.eq_ignore_ascii_case("lua") {
            return Err(format!("Engine '{engine}' not found"));
        }
        Ok(Header { name, len })
    }
}

/// Checks the name of a library or of a function.
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    let is_fine = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_fine.then_some(()).ok_or(
        "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
    )
}

/// A function that FCALL can call.
#[derive(Debug)]
pub struct LibraryFunction {
    /// Name, as it was registered.
    pub name: String,
    /// The author's description.
    pub description: Option<Bytes>,
    /// Flags that the function declares.
    pub flags: Flags,
    pub(super) callback: RegistryKey,
    pub(super) tail: Tail,
}

/// A library that FUNCTION LOAD has compiled: its code and its functions.
#[derive(Debug)]
pub struct Library {
    /// The name by which FUNCTION DELETE and FUNCTION LIST find it.
    pub name: String,
    /// Code, as it was loaded.
    pub code: Bytes,
    /// Functions, sorted by the lower-case names that FCALL looks up.
    pub functions: BTreeMap<String, Rc<LibraryFunction>>,
}

impl Library {
    /// Compiles the code of a library. The code must register a function.
    ///
    /// # Errors
    /// The text of the error reply, without its code.
    pub fn compile(engine: &Engine, code: &Bytes, header: &Header) -> Result<Rc<Library>, String> {
        let library = engine.load_library(code, header)?;
        if library.functions.is_empty() {
            Err("No functions registered".into())
        } else {
            Ok(Rc::new(library))
        }
    }

    pub(super) fn new(name: String, code: Bytes, registered: Vec<Registered>, tail: Tail) -> Library {
        let functions = registered.into_iter().map(|function| {
            let Registered { name, description, flags, callback } = function;
            let key = name.to_ascii_lowercase();
            (key, Rc::new(LibraryFunction { name, description, flags, callback, tail }))
        });
        Library { name, code, functions: functions.collect() }
    }
}

/// All libraries of a node. No two of them register the same function.
#[derive(Debug, Default, Clone)]
pub struct Libraries {
    by_name: BTreeMap<String, Rc<Library>>,
    functions: BTreeMap<String, Rc<LibraryFunction>>,
}

impl Libraries {
    /// Compiles libraries from their code.
    ///
    /// # Errors
    /// The text of the first library's error.
    pub fn of(engine: &Engine, codes: &[Bytes]) -> Result<Libraries, String> {
        let mut libraries = Libraries::default();
        for code in codes {
            let header = Header::read(code)?;
            if libraries.get(&header.name).is_some() {
                return Err(format!("Library '{}' already exists", header.name));
            }
            libraries.add(Library::compile(engine, code, &header)?, false)?;
        }
        Ok(libraries)
    }

    /// Adds a library. With `replace`, replaces the one of the same name.
    ///
    /// # Errors
    /// The text of the error reply, without its code. The libraries are then unchanged.
    pub fn add(&mut self, library: Rc<Library>, replace: bool) -> Result<(), String> {
        let old = self.by_name.get(&library.name);
        if old.is_some() && !replace {
            return Err(format!("Library {} already exists", library.name));
        }
        let is_old = |key: &str| old.is_some_and(|old| old.functions.contains_key(key));
        let mut functions = library.functions.iter();
        let taken = functions.find(|(key, _)| self.functions.contains_key(*key) && !is_old(key));
        if let Some((_, function)) = taken {
            return Err(format!("Function {} already exists", function.name));
        }
        self.remove(&library.name);
        let functions = library.functions.iter().map(|(key, function)| (key.clone(), Rc::clone(function)));
        self.functions.extend(functions);
        self.by_name.insert(library.name.clone(), library);
        Ok(())
    }

    /// Removes a library with its functions; returns true if it existed.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(library) = self.by_name.remove(name) else { return false };
        for key in library.functions.keys() {
            self.functions.remove(key);
        }
        true
    }

    /// Finds a library by name.
    pub fn get(&self, name: &str) -> Option<&Rc<Library>> {
        self.by_name.get(name)
    }

    /// Finds a function by name, in either case.
    pub fn function(&self, name: &[u8]) -> Option<&Rc<LibraryFunction>> {
        self.functions.get(&std::str::from_utf8(name).ok()?.to_ascii_lowercase())
    }

    /// Returns the libraries, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Rc<Library>> {
        self.by_name.values()
    }

    /// Returns the number of libraries, not of functions.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns true if no library is loaded.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the number of functions of all libraries.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }
}
