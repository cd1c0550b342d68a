// Where Lark's API is: one of its two clouds by name, or an address of one's own.

const CLOUDS: Readonly<Record<string, string>> = {
  feishu: 'https://open.feishu.cn',
  lark: 'https://open.larksuite.com',
};

/** The address without a path and without a slash at its end. */
export function larkRoot(domain: string): string {
  return (Object.hasOwn(CLOUDS, domain) ? CLOUDS[domain] : domain)?.replace(/\/+$/, '') ?? domain;
}
