// Tells the library the reader's time zone: its pages show their times in it.
'use strict';
{
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone && !document.cookie.split('; ').includes(`time_zone=${zone}`)) {
        const secure = location.protocol === 'https:' ? '; secure' : '';
        document.cookie = `time_zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
    }
}
