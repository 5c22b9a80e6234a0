// Package userv1grpc is the user service for grpc-go. The messages are in package userv1, which does not import grpc.
package userv1grpc
