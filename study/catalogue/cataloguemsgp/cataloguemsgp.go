// Package cataloguemsgp has the messages of the catalogue as copies of the plain structs, with the methods that
// tinylib/msgp generates. Package internal/transport/codec/msgp says why lists have a limit.
package cataloguemsgp

//go:generate go -C ../../../internal/tools run ./gentypes -tag msg -limit 65536 ../../study/catalogue/cataloguemsgp ../../study/catalogue/types_gen.go
//go:generate go tool -modfile=../../../internal/tools/go.mod msgp -io=false -tests=false -file types_gen.go -o methods_gen.go
