// Package userv1 is the protobuf form of the user API: messages field-equal to the plain structs of package rpcbench,
// whose rules decide what is valid. The service is in package userservice and below it.
package userv1
