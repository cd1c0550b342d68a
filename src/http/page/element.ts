// Creates DOM nodes. Text becomes text nodes only, so no text can become markup.

type Props<Tag extends keyof HTMLElementTagNameMap> = Partial<
  Omit<HTMLElementTagNameMap[Tag], 'children'>
> & {
  readonly data?: Readonly<Record<string, string>>;
  readonly aria?: Readonly<Record<string, string>>;
  readonly on?: Readonly<Record<string, (event: Event) => unknown>>;
};

export type Child = Node | string | undefined;

/**
 * `props` are DOM properties; `data`, `aria` and `on` hold data attributes, ARIA attributes and
 * listeners. Undefined children are skipped.
 */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  props: Props<Tag> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const { data = {}, aria = {}, on = {}, ...properties } = props;
  const node = Object.assign(document.createElement(tag), properties);
  Object.assign(node.dataset, data);
  for (const [name, value] of Object.entries(aria)) node.setAttribute(`aria-${name}`, value);
  for (const [type, listener] of Object.entries(on)) node.addEventListener(type, listener);
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

/** @throws Error for what is not in the page */
export function byId<Node extends HTMLElement = HTMLElement>(id: string): Node {
  const node = document.getElementById(id);
  if (node === null) throw new Error(id);
  return node as Node;
}

/** An icon of icons.svg, hidden from screen readers. */
export function icon(name: string): SVGElement {
  const namespace = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(namespace, 'svg');
  const use = document.createElementNS(namespace, 'use');
  use.setAttribute('href', `/icons.svg#${name}`);
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  svg.append(use);
  return svg;
}

/** A button with an icon and a label for screen readers. */
export function iconButton(
  name: string,
  label: string,
  onClick: () => unknown,
  className = '',
): HTMLButtonElement {
  const node = element('button', { type: 'button', title: label, aria: { label } }, icon(name));
  node.className = `icon-button ${className}`.trim();
  node.addEventListener('click', onClick);
  return node;
}
