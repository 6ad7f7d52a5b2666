import { sourcePages } from '../.vitepress/source-pages.ts';

/** The pages of files outside of docs/ that a page links to. */
export default { paths: sourcePages };
