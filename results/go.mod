module github.com/rpcbench/rpcbench/results // keeps the results out of the module

go 1.26
