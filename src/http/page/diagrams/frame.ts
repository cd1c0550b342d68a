// The frame in which a diagram is drawn. It has no origin, no login and no network; it hears the source
// from the page around it and says how high the drawing is, or why there is none.

import type { Drawn, Source } from './messages.ts';

/** A wide diagram is scrolled rather than drawn smaller than this. */
const MIN_SCALE = 0.55;
const dark = matchMedia('(prefers-color-scheme: dark)');
const place = document.createElement('main');

// A browser draws no frames for what is beyond the screen, and some diagrams wait for one.
window.requestAnimationFrame = (work) => setTimeout(() => work(performance.now()));
const { default: mermaid } = await import('mermaid');

function tell(message: Drawn) {
  // Heard by no other page that might hold this frame.
  window.parent.postMessage(message, location.origin);
}

async function draw(source: string) {
  try {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: 'strict',
      suppressErrorRendering: true,
      // The other layout engine is not part of the bundle.
      layout: 'dagre',
      theme: dark.matches ? 'dark' : 'default',
      // What the text of a diagram must not set, beside what Mermaid refuses itself.
      secure: [
        'secure',
        'securityLevel',
        'startOnLoad',
        'maxTextSize',
        'maxEdges',
        'suppressErrorRendering',
        'layout',
        'themeCSS',
        'fontFamily',
        'dompurifyConfig',
      ],
    });
    const { svg } = await mermaid.render('drawing', source, place);
    place.innerHTML = svg;
    // A frame has nowhere to go.
    for (const link of place.querySelectorAll('a')) {
      for (const name of ['href', 'xlink:href', 'target']) link.removeAttribute(name);
    }
    scaleToFit();
  } catch (error) {
    const said = String(error instanceof Error ? error.message : error);
    tell({ type: 'failed', reason: said.replace(/:?\n.*$/s, '.') });
  }
}

/** Draws at its natural size, or as wide as the frame. */
function scaleToFit() {
  const svg = place.querySelector('svg');
  if (svg === null) return;
  const { width, height } = svg.viewBox.baseVal;
  const { paddingLeft, paddingRight } = getComputedStyle(place);
  const room =
    document.documentElement.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  const scale = Math.min(1, Math.max(MIN_SCALE, room / width));
  svg.style.maxWidth = 'none';
  svg.setAttribute('width', String(width * scale));
  svg.setAttribute('height', String(height * scale));
  const scrollbar = window.innerHeight - document.documentElement.clientHeight;
  tell({ type: 'drawn', height: place.offsetHeight + scrollbar });
}

function follow() {
  let source: string | undefined;
  dark.addEventListener('change', () => {
    if (source !== undefined) void draw(source);
  });
  window.addEventListener('message', ({ source: from, origin, data }: MessageEvent<Source>) => {
    if (from !== window.parent || origin !== location.origin) return;
    source = data.source;
    void draw(source);
  });
}

document.body.append(place);
window.addEventListener('resize', scaleToFit);
follow();
tell({ type: 'ready' });
