# What Redis's framework for Sentinels and clusters is told here: `run.py` has its copy source this file at its end.

# Units that run in parallel have separate ports; those of the bus of a cluster are 10,000 above.
set ::redis_base_port $::env(SUITE_PORT)
set ::redis_port_count 500
set ::sentinel_base_port [expr {$::env(SUITE_PORT) + $::redis_port_count}]

# The look for descriptors that leak into the scripts of a Sentinel: Sentinels of lockstorm start no scripts.
if {[info exists ::env(LOCKSTORM)]} {
    set ::leaked_fds_file ""
}

set file [open $::env(SUITE_SKIPPED)]
set ::skipped [split [read $file] "\n"]
close $file

# Says of each test what the framework of the other units says, so that one program can read both; and leaves out tests by name.
# A test that fails ends its unit: those after it build upon it.
proc test {name code} {
    if {$name in $::skipped} {
        puts "\[skip\]: $name"
        return
    }
    set begun [clock milliseconds]
    if {[catch {uplevel 1 $code} said]} {
        puts "\n\[err\]: $name in tests/$::env(SUITE_UNIT).tcl\n$said"
        error $said $::errorInfo
    }
    puts "\n\[ok\]: $name ([expr {[clock milliseconds] - $begun}] ms)"
    flush stdout
}
