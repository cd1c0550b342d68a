// Creates DOM nodes. Text becomes text nodes only, so no text can become markup.

/**
 * `props` are DOM properties; `data`, `aria` and `on` hold data attributes, ARIA attributes and
 * listeners. Undefined children are skipped.
 */
export function element(tag, props = {}, ...children) {
  const { data = {}, aria = {}, on = {}, ...properties } = props;
  const node = Object.assign(document.createElement(tag), properties);
  Object.assign(node.dataset, data);
  for (const [name, value] of Object.entries(aria)) node.setAttribute(`aria-${name}`, value);
  for (const [type, listener] of Object.entries(on)) node.addEventListener(type, listener);
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

/** An icon of icons.svg, hidden from screen readers. */
export function icon(name) {
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
export function iconButton(name, label, onClick, className = '') {
  const props = { type: 'button', className: `icon-button ${className}`.trim(), title: label };
  return element('button', { ...props, aria: { label }, on: { click: onClick } }, icon(name));
}
