// The module that the server sends with its translation in it: `/texts.js`.

export function t(strings: TemplateStringsArray, ...values: readonly unknown[]): string;
