-- The world a script sees, or with `is_library` the functions of libraries. Run once per interpreter with the functions that
-- Rust provides; answers the proxy that stands for the globals, the function that runs a script, and the one that loads a
-- library.
--
-- PUC Lua has no read-only tables, so each table that Redis protects stands behind an empty proxy: reads fall through to
-- it by `__index`, writes meet `__newindex`. Functions of the library that look past metatables learn about the proxies.

local rust, is_library = ...
local globals = {}

local error, type, select = error, type, select
local rawget, rawset, rawnext, rawpairs = rawget, rawset, next, pairs
local rawpcall, rawxpcall, rawload, rawloadstring = pcall, xpcall, load, loadstring
local rawgetmetatable, rawsetmetatable = getmetatable, setmetatable
local rawtostring, byte, format, sub = tostring, string.byte, string.format, string.sub
local unpack, ipairs = unpack, ipairs

local READONLY = "Attempt to modify a readonly table"
local behind = rawsetmetatable({}, { __mode = "k" })

local function refuse()
  error(READONLY, 2)
end

local function freeze(content, metatable)
  local proxy = rawsetmetatable({}, { __index = content, __newindex = refuse })
  behind[proxy] = content
  return proxy
end

-- For library functions that change their first argument without asking its metatable. Each wrapper calls the function by
-- its own name, which is the one that Lua puts into complaints about arguments.
local function spare(target)
  if behind[target] then error(READONLY, 0) end
end

-- Errors raised by Rust arrive as userdata, and become what Redis raises: a table with the reply, or a text. The end of a
-- script that ran for too long is not for scripts to catch. A panic is none at all: Rust raises it again wherever it is shown
-- one. What Lua calls as a handler of errors answers it instead, for an error in a handler is lost.
local function plain(err)
  if type(err) ~= "userdata" then return err end
  local value, fatal = rust.explain(err)
  if fatal then error(err, 0) end
  return value
end

-- C's pcall has room for some twenty results: many of them come in a table. The function is called without a name, because
-- pcall gives it none.
local MANY, FEW = {}, 15
local function handed(...)
  local n = select("#", ...)
  if n <= FEW then return ... end
  return MANY, n, { ... }
end

local function called(...)
  return handed((...)(select(2, ...)))
end

local function taken(...)
  if (...) ~= MANY then return ... end
  local _, n, results = ...
  return unpack(results, 1, n)
end

local function guarded(f)
  return function() return handed(f()) end
end

-- What runs a script or a function: one result is all that a reply is made of. A script has no arguments of its own.
local running, running_keys, running_args
local function begin()
  return (running())
end
if is_library then
  function begin()
    return (running(running_keys, running_args))
  end
end

-- Where C would have no position to tell, these have one.
running = function() error("", 2) end
local _, in_called = rawpcall(called, error, "", 1)
local _, in_guarded = rawpcall(guarded(running))
local _, in_begin = rawpcall(begin)
local function bare(err)
  if type(err) ~= "string" or sub(err, 1, 8) ~= "sandbox:" then return err end
  for _, position in ipairs({ in_called, in_guarded, in_begin }) do
    if sub(err, 1, #position) == position then return sub(err, #position + 1) end
  end
  return err
end

local function settled(ok, ...)
  if ok then return true, taken(...) end
  return false, bare(plain((...)))
end

-- `pcall` hands out the text of an error reply, not its table.
local function settled_text(ok, ...)
  if ok then return true, taken(...) end
  local err = bare(plain((...)))
  if type(err) == "table" and err.err ~= nil then err = err.err end
  return false, err
end

local function next(t, key)
  return rawnext(behind[t] or t, key)
end

-- Compiled code could do anything to the interpreter, so only source is taken.
local function is_source(text)
  return type(text) ~= "string" or byte(text, 1) ~= 27
end

local base = {
  _VERSION = _VERSION,
  assert = assert,
  collectgarbage = collectgarbage,
  error = error,
  gcinfo = gcinfo,
  ipairs = ipairs,
  next = next,
  rawequal = rawequal,
  select = select,
  tonumber = tonumber,
  type = type,
  unpack = unpack,
}

-- An address differs from run to run; the order in which scripts print their objects does not.
local names, named = rawsetmetatable({}, { __mode = "k" }), 0
local function name_of(value, kind)
  local name = names[value]
  if not name then
    named = named + 1
    name = format("%s: 0x%012x", kind, named * 32)
    names[value] = name
  end
  return name
end

function base.tostring(...)
  local tostring = rawtostring
  if select("#", ...) == 0 then return tostring(...) end
  local value = ...
  local kind = type(value)
  if kind == "table" or kind == "function" or kind == "thread" then
    local metatable = rawgetmetatable(value)
    if not (metatable and metatable.__tostring) then return name_of(value, kind) end
  end
  return rawtostring(value)
end

function base.rawset(t, ...)
  spare(t)
  return rawset(t, ...)
end

function base.rawget(t, key)
  return rawget(behind[t] or t, key)
end

function base.pairs(t)
  if behind[t] then return next, t, nil end
  return rawpairs(t)
end

function base.getmetatable(value)
  if value ~= nil and behind[value] then
    local metatable = rawgetmetatable(behind[value])
    return metatable and freeze(metatable) or nil
  end
  local metatable = rawgetmetatable(value)
  if type(value) == "string" then return freeze(metatable) end
  return metatable
end

function base.setmetatable(t, metatable)
  spare(t)
  local setmetatable = rawsetmetatable
  return setmetatable(t, metatable)
end

function base.pcall(...)
  -- Redis 6.2 has Lua's own function, which hands out the table of an error.
  if rust.is_old then
    if select("#", ...) == 0 then error("bad argument #1 to 'pcall' (value expected)", 2) end
    return settled(rawpcall(called, ...))
  end
  -- So a server says, whose own handler stands where the function should.
  if select("#", ...) == 0 then return false, "attempt to call a boolean value" end
  return settled_text(rawpcall(called, ...))
end

-- A handler that fails is asked again, with its own error, until C's stack would be full: so often where nothing else is on it.
local HANDLED_MAX = 221

function base.xpcall(...)
  if select("#", ...) < 2 then error("bad argument #2 to 'xpcall' (value expected)", 2) end
  local f, handler = ...
  return settled(rawxpcall(guarded(f), function(err)
    if type(handler) ~= "function" then return "error in error handling" end
    for _ = 1, HANDLED_MAX do
      local explained, value, fatal = true, err, false
      if type(err) == "userdata" then explained, value, fatal = rawpcall(rust.explain, err) end
      if not explained then return value end
      if fatal then return err end
      local handled, result = rawpcall(handler, bare(value))
      if handled then return result end
      err = result
    end
    return "error in error handling"
  end))
end

function base.loadstring(text, name)
  if not is_source(text) then return nil, "bytecode is not accepted" end
  if type(text) == "string" then rust.charge(#text) end
  local loadstring = rawloadstring
  return loadstring(text, name)
end

-- What the reader of `load` raises comes back as a result, also the end of the script: who has nothing left to pay with is told
-- so again.
local function loaded(f, err)
  if f == nil then rust.charge(0) end
  return f, err
end

function base.load(reader, name)
  local load = rawload
  if type(reader) ~= "function" then return load(reader, name) end
  local first = true
  return loaded(load(function()
    local piece = reader()
    if first and type(piece) == "string" and piece ~= "" then
      first = false
      if not is_source(piece) then return nil end
    end
    if type(piece) == "string" then rust.charge(#piece) end
    return piece
  end, name))
end

for name, value in rawpairs(base) do globals[name] = value end

local function copied(library, names)
  local copy = {}
  for name in names:gmatch("%S+") do copy[name] = library[name] end
  return copy
end

local strings = rust.strings
local libraries = {
  string = copied(string, "byte char dump len"),
  table = copied(table, "foreach foreachi getn insert maxn remove setn sort"),
  math = copied(math, "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min "
    .. "mod modf pi pow rad sin sinh sqrt tan tanh"),
  coroutine = copied(coroutine, "create resume running status wrap yield"),
}
-- Lua's own matcher knows no budget. What a replacement calls or looks up is called from here, so that its errors and its
-- instructions are the script's.
for name in ("find format lower match rep reverse sub upper"):gmatch("%a+") do libraries.string[name] = strings[name] end
libraries.table.concat = strings.concat
local seek, concat = strings.seek, table.concat
local gmatch_arguments, gsub_arguments = strings.gmatch_arguments, strings.gsub_arguments

function libraries.string.gmatch(...)
  local text, pattern = gmatch_arguments(...)
  local at = 0
  local function passed(first, last, ...)
    if not first then return end
    at = last > first and last or last + 1
    return ...
  end
  return function()
    if at <= #text then return passed(seek(text, pattern, at)) end
  end
end
libraries.string.gfind = libraries.string.gmatch

local function replaced(with, is_function, first, last, ...)
  if not first then return end
  if is_function then return first, last, (with(...)) end
  return first, last, with[(...)]
end

function libraries.string.gsub(...)
  local with = select(3, ...)
  local kind = type(with)
  if kind ~= "function" and kind ~= "table" then
    local gsub = strings.gsub
    return gsub(...)
  end
  local text, pattern, max, anchored = gsub_arguments(...)
  local pieces, n, at, count = {}, 0, 0, 0
  while count < max do
    local first, last, piece = replaced(with, kind == "function", seek(text, pattern, at, true))
    if not first then break end
    count = count + 1
    if not piece then
      piece = sub(text, first + 1, last)
    elseif type(piece) ~= "string" and type(piece) ~= "number" then
      rust.complain("invalid replacement value (a " .. type(piece) .. ")")
    end
    pieces[n + 1], pieces[n + 2] = sub(text, at + 1, first), piece
    n, at = n + 2, last
    if first == last then
      n, at = n + 1, at + 1
      pieces[n] = sub(text, at, at)
    end
    if anchored or at > #text then break end
  end
  pieces[n + 1] = sub(text, at + 1)
  return concat(pieces), count
end

-- Functions that C may be busy with for long are paid for beforehand.
local LARGE = 1000
local insert, remove, sort = table.insert, table.remove, table.sort
function libraries.table.insert(t, ...)
  spare(t)
  local at = ...
  if type(at) == "number" and select("#", ...) > 1 and type(t) == "table" and #t - at > LARGE then
    rust.charge(#t - at)
  end
  return insert(t, ...)
end
function libraries.table.remove(t, ...)
  spare(t)
  return remove(t, ...)
end
local function less(a, b)
  if type(a) ~= type(b) then error("attempt to compare " .. type(a) .. " with " .. type(b), 0) end
  return a < b
end
function libraries.table.sort(t, ...)
  spare(t)
  -- Long texts take long to compare, which only instructions are counted for.
  if type(t) == "table" and #t > LARGE and type(t[1]) == "string" and (...) == nil then return sort(t, less) end
  return sort(t, ...)
end
libraries.math.random = rust.random
libraries.math.randomseed = rust.randomseed

local resume = coroutine.resume
function libraries.coroutine.resume(...)
  return settled(resume(...))
end

for name, library in rawpairs(rust.libraries) do libraries[name] = library end
for name, library in rawpairs(libraries) do globals[name] = freeze(library) end
-- Valkey has a second name for the table.
if rust.also then globals[rust.also] = globals.redis end
rawgetmetatable("").__index = globals.string

if not is_library then globals.__redis__err__handler = rust.locate end
local function absent(_, name)
  error("Script attempted to access nonexistent global variable '" .. rawtostring(name) .. "'", 2)
end
rawsetmetatable(globals, { __index = absent })
local seen = freeze(globals)
globals._G = seen
-- Redis 6.2 has its own words for a new global variable.
if rust.is_old then
  rawgetmetatable(seen).__newindex = function(_, name)
    error("Script attempted to create global variable '" .. rawtostring(name) .. "'", 2)
  end
end

local function locate(err)
  local _, located = rawpcall(rust.locate, bare(err))
  return located
end

local view = rawgetmetatable(seen)
local function run(script, keys, argv)
  if is_library then
    -- A library may have been stopped while it was loaded, whatever it was doing.
    view.__index = globals
    running_keys, running_args = keys, argv
  else
    globals.KEYS, globals.ARGV = keys, argv
  end
  running = script
  return rawxpcall(begin, locate)
end

-- While a library is loaded, its code sees nothing but what it registers functions with. Functions that it makes see the
-- whole world once they are called.
local loading = { redis = freeze(rawsetmetatable(rust.loading, { __index = absent })) }
if rust.also then loading[rust.also] = loading.redis end
rawsetmetatable(loading, { __index = absent })
local function load(code)
  view.__index = loading
  local ok, err = rawxpcall(function() code() end, locate)
  view.__index = globals
  return ok, err
end

return seen, run, load
