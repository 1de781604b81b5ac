-- The world a script sees. Run once per engine with the functions that Rust provides; answers the table of globals, the
-- proxy that scripts see in its place, and the function that runs a script.
--
-- PUC Lua has no read-only tables, so each table that Redis protects stands behind an empty proxy: reads fall through to
-- it by `__index`, writes meet `__newindex`. Functions of the library that look past metatables learn about the proxies.

local rust = ...
local globals = {}

local error, type, select = error, type, select
local rawget, rawset, rawnext, rawpairs = rawget, rawset, next, pairs
local rawpcall, rawxpcall, rawload, rawloadstring = pcall, xpcall, load, loadstring
local rawgetmetatable, rawsetmetatable = getmetatable, setmetatable
local rawtostring, byte, format = tostring, string.byte, string.format

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
-- script that ran for too long is not for scripts to catch.
local function plain(err)
  if type(err) ~= "userdata" then return err end
  local value, fatal = rust.explain(err)
  if fatal then error(err, 0) end
  return value
end

local function settled(ok, ...)
  if ok then return true, ... end
  return false, plain((...))
end

-- `pcall` hands out the text of an error reply, not its table.
local function settled_text(ok, ...)
  if ok then return true, ... end
  local err = plain((...))
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
  if select("#", ...) == 0 then return rawtostring(...) end
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
  return settled_text(rawpcall(...))
end

function base.xpcall(f, handler)
  return settled(rawxpcall(f, function(err)
    local value, fatal = err, false
    if type(err) == "userdata" then value, fatal = rust.explain(err) end
    if fatal then return err end
    return handler(value)
  end))
end

function base.loadstring(text, name)
  if not is_source(text) then return nil, "bytecode is not accepted" end
  local loadstring = rawloadstring
  return loadstring(text, name)
end

function base.load(reader, name)
  local load = rawload
  if type(reader) ~= "function" then return load(reader, name) end
  local first = true
  return load(function()
    local piece = reader()
    if first and type(piece) == "string" and piece ~= "" then
      first = false
      if not is_source(piece) then return nil end
    end
    return piece
  end, name)
end

for name, value in rawpairs(base) do globals[name] = value end

local function copied(library, names)
  local copy = {}
  for name in names:gmatch("%S+") do copy[name] = library[name] end
  return copy
end

local libraries = {
  string = copied(string, "byte char dump find format gfind gmatch gsub len lower match rep reverse sub upper"),
  table = copied(table, "concat foreach foreachi getn insert maxn remove setn sort"),
  math = copied(math, "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min "
    .. "mod modf pi pow rad sin sinh sqrt tan tanh"),
  coroutine = copied(coroutine, "create resume running status wrap yield"),
}
local insert, remove, sort = table.insert, table.remove, table.sort
function libraries.table.insert(t, ...)
  spare(t)
  return insert(t, ...)
end
function libraries.table.remove(t, ...)
  spare(t)
  return remove(t, ...)
end
function libraries.table.sort(t, ...)
  spare(t)
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
rawgetmetatable("").__index = globals.string

globals.__redis__err__handler = rust.locate
rawsetmetatable(globals, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. rawtostring(name) .. "'", 2)
  end,
})
local seen = freeze(globals)
globals._G = seen

local locate = rust.locate
local function run(script, keys, argv)
  globals.KEYS = keys
  globals.ARGV = argv
  return rawxpcall(script, locate)
end

return seen, run
