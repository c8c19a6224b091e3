package main

// Run gives tests the command.
var Run = run

// FreePorts gives tests the choice of ports.
var FreePorts = freePorts
