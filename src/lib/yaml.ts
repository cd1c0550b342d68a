// YAML 1.2 for front matter and profiles: plain data, no tags that create objects, few aliases. The
// parser is loaded when the first text is read.

const MAX_CHARS = 100_000;
/** Aliases of aliases grow exponentially; front matter needs none. */
const MAX_ALIASES = 20;

/** `message` names place and problem, suitable for people. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
}

/** @throws YamlError */
export async function parseYaml(text: string): Promise<unknown> {
  if (text.length > MAX_CHARS) throw new YamlError(`longer than ${MAX_CHARS} characters`);
  const { parse } = await import('yaml');
  try {
    return parse(text, {
      ...{ schema: 'core', customTags: [], maxAliasCount: MAX_ALIASES, uniqueKeys: true },
      ...{ prettyErrors: true, logLevel: 'error' },
    });
  } catch (cause) {
    const [first = ''] = cause instanceof Error ? cause.message.split('\n') : [];
    throw new YamlError(first.replace(/:$/, ''), { cause });
  }
}
