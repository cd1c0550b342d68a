// Word documents, by mammoth. It gets an archive that was packed here, with only the parts that
// hold text.

import { zipSync } from 'fflate';
import mammoth from 'mammoth';
import { htmlText } from '../../../lib/html/html-text.ts';
import { t } from '../../../lib/texts.ts';
import type { Archive } from './archive.ts';
import { DAMAGED, DocumentProblem, Sections } from './extract.ts';

const NO_TEXT = t`this document has no text`;
const TEXT_PARTS = /^(?:\[Content_Types\]\.xml|_rels\/\.rels|word\/[^/]+\.xml|word\/_rels\/[^/]+)$/;

export async function readDocx(archive: Archive) {
  const html = await mammoth.convertToHtml(
    { buffer: Buffer.from(repacked(archive, TEXT_PARTS)) },
    { externalFileAccess: false, convertImage: mammoth.images.imgElement(noImage) },
  );
  const sections = new Sections();
  sections.add('', htmlText(html.value));
  return sections.reading(NO_TEXT);
}

const noImage = async () => ({ src: '' });

/** An uncompressed archive of the matching parts: a library cannot be made to unpack more. */
function repacked(archive: Archive, wanted: RegExp): Uint8Array {
  const names = archive.names.filter((name) => wanted.test(name));
  const parts = names.flatMap((name) => {
    const xml = archive.xml(name);
    return xml === undefined
      ? []
      : [[name, new TextEncoder().encode(withoutByteOrder(xml))] as const];
  });
  if (parts.length === 0) throw new DocumentProblem(DAMAGED);
  return zipSync(Object.fromEntries(parts), { level: 0 });
}

/** Removes the encoding declaration from text that is UTF-8 now. */
const withoutByteOrder = (xml: string) =>
  xml.replace(/^(<\?xml[^>]*?)\s+encoding\s*=\s*(?:"[^"]*"|'[^']*')/, '$1');
