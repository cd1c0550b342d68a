// Which addresses may become links: those a reader can judge. Anything else stays text.

/** The address when it is http, https or mailto and has no white space; else undefined. */
export function safeHref(href: string): string | undefined {
  return /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i.test(href) ? href : undefined;
}
