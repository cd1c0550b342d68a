// Reads a multipart form byte by byte (RFC 7578): files come without a name here.

export function parseForm(body: Buffer, contentType: string): ReadonlyMap<string, Buffer> {
  const boundary = /boundary=([^;]+)/.exec(contentType)?.[1]?.replace(/^"|"$/g, '');
  if (boundary === undefined) throw new Error('a form without a boundary');
  const mark = Buffer.from(`--${boundary}`);
  const fields = new Map<string, Buffer>();
  let at = body.indexOf(mark);
  while (at >= 0) {
    const next = body.indexOf(mark, at + mark.length);
    if (next < 0) break;
    const part = body.subarray(at + mark.length + 2, next - 2);
    const split = part.indexOf('\r\n\r\n');
    const name = /name="([^"]*)"/.exec(part.subarray(0, split).toString())?.[1];
    if (name !== undefined) fields.set(name, part.subarray(split + 4));
    at = next;
  }
  return fields;
}
