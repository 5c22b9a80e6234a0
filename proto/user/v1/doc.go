// Package userv1 is the protobuf form of package rpcbench's User and Response, whose rules decide what is valid.
package userv1
