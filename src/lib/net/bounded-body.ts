// A body read whole, as far as it is not too long.

/** Undefined where it is longer; the rest is not fetched then. @throws what the connection throws */
export async function boundedBody(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > maxBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

// Node's HTTP without its fetch. An ES import of `node:http` reads every name it exports, and three
// of them load the built-in fetch: some 9 MB that a gateway at rest does not need.

export const nodeHttp = process.getBuiltinModule('node:http');
