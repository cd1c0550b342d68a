// The colours of code. Loaded with the first block whose language it knows.

import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/cpp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { createLowlight } from 'lowlight';
import type { ComponentChildren } from 'preact';

type Coloured = ReturnType<ReturnType<typeof createLowlight>['highlight']>;

const lowlight = createLowlight({
  ...{ bash, cpp: c, css, diff, go, ini, java, javascript, json, python, rust, sql, typescript },
  ...{ xml, yaml },
});
lowlight.registerAlias({ bash: ['console', 'shell', 'zsh'], cpp: ['c', 'h'], yaml: ['yml'] });

/** Undefined for a language that it does not know. */
export function coloured(text: string, language: string): ComponentChildren {
  if (!lowlight.registered(language)) return undefined;
  return lowlight.highlight(language, text).children.map(shown);
}

function shown(part: Coloured['children'][number]): ComponentChildren {
  if (part.type === 'text') return part.value;
  if (part.type !== 'element') return undefined;
  const { className } = part.properties;
  return (
    <span class={String(Array.isArray(className) ? className.join(' ') : '')}>
      {part.children.map(shown)}
    </span>
  );
}
