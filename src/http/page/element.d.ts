// The types of element.js.

type Props<Node> = Partial<Node> & {
  readonly data?: Readonly<Record<string, string>>;
  readonly aria?: Readonly<Record<string, string>>;
  readonly on?: Readonly<Record<string, (event: Event) => unknown>>;
};

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  props?: Props<HTMLElementTagNameMap[Tag]>,
  ...children: readonly (Node | string | undefined)[]
): HTMLElementTagNameMap[Tag];
