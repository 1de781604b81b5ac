//! Redis locks for production, wire-compatible with Redisson.
