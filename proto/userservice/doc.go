// Package userservice is the user service's descriptor, for userservicegrpc and userserviceconnect. Package userv1 has
// the messages.
package userservice
