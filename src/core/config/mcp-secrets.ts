// What is secret in the settings of a tool server: keys stand in its environment and headers, and as
// often among the arguments of its program or in its address, where other programs keep them too.

import { isReference } from '../environment.ts';

const NAME = /key|token|secret|pass|auth|cookie|credential/i;
const VALUE = /^(?!\/|https?:)(?=.*\d|.*[a-z].*[A-Z]|.*[A-Z].*[a-z]).{8,}$/s;
/** `--api-key=x`, `API_KEY=x`, `Authorization: Bearer x`. */
const ASSIGNED = /^-{0,2}([\w.-]+)(?:=|:\s+)(.+)$/s;
const FLAG = /^-{1,2}(?!no-)[\w-]+$/;
/** No place, no address and no other flag. */
const GIVEN = /^(?![-./~]|https?:).{6,}$/s;
/** Random letters and digits, as in addresses that are a key themselves. */
const RANDOM = /^(?=.*\d)(?=.*[A-Za-z])[\w-]{24,}$/;

/**
 * What of a value of `env` or `headers` is a secret. They hold settings as well: no word, number, path
 * or address is one that answers may hold too, unless its name says so.
 */
export function toolServerSecrets(path: string, value: string): readonly string[] {
  const name = path.slice(path.lastIndexOf('.') + 1);
  return [...new Set([value, lastWord(value)])].filter(
    (part) => NAME.test(name) || VALUE.test(part),
  );
}

/** What of the arguments is a secret: what a flag or name says is one. */
export function argumentSecrets(args: readonly string[]): readonly string[] {
  return args.flatMap((arg, index) => {
    const [, name = '', value = ''] = ASSIGNED.exec(arg) ?? [];
    if (value !== '') return NAME.test(name) ? given(lastWord(value)) : [];
    const before = args[index - 1] ?? '';
    return FLAG.test(before) && NAME.test(before) ? given(lastWord(arg)) : [];
  });
}

/** What of an address is a secret: parameters named so, and parts that are nothing but random. */
export function addressSecrets(address: string): readonly string[] {
  const url = URL.parse(address);
  if (url === null) return [];
  const parameters = [...url.searchParams].flatMap(([name, value]) =>
    NAME.test(name) || RANDOM.test(value) ? given(value) : [],
  );
  return [...parameters, ...url.pathname.split('/').filter((part) => RANDOM.test(part))];
}

const given = (value: string) => (GIVEN.test(value) && !isReference(value) ? [value] : []);

const lastWord = (value: string) => value.slice(value.lastIndexOf(' ') + 1);
