// Without fonts of its own: the reader's system has them.
import Theme from 'vitepress/theme-without-fonts';
import './style.css';

export default Theme;
