// Node's HTTP without its fetch. An ES import of `node:http` reads every name it exports, and three
// of them load the built-in fetch: some 9 MB that a gateway at rest does not need.

export const nodeHttp = process.getBuiltinModule('node:http');
