"""The command line: parse, call, print. Verbs import the library when they run, so that `ilde --help` is quick."""
